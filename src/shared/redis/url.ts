// REDIS_URL taken apart, before anything in it is believed. Like any URL, but of Sentinel and Cluster it names several
// hosts, which the standard does not know.

export interface RedisUrl {
  scheme: string;
  /** As they stand there, percent-encoded. */
  username: string;
  password: string;
  /** `host`, `host:port` or `[v6]:port`. */
  hosts: string[];
  /** Without the first slash. */
  path: string;
  query: string;
}

/** Null where it is no URL. A password may hold an `@`: what follows the last one are the hosts. */
export function splitRedisUrl(text: string): RedisUrl | null {
  const parts = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?(?:#.*)?$/i.exec(text);
  if (parts === null) return null;
  const [, scheme = '', authority = '', path = '', query = ''] = parts;
  const at = authority.lastIndexOf('@');
  const login = at < 0 ? '' : authority.slice(0, at);
  const colon = login.indexOf(':');
  return {
    scheme: scheme.toLowerCase(),
    username: colon < 0 ? login : login.slice(0, colon),
    password: colon < 0 ? '' : login.slice(colon + 1),
    hosts: authority.slice(at + 1).split(','),
    path,
    query,
  };
}

const SECRET_PARAMETERS = ['sentinel_password'] as const;

/** What must not be shown of it: as it is sent, and as it stands there. */
export function secretsOfUrl(text: string): string[] {
  const url = splitRedisUrl(text);
  if (url === null) return [];
  const plain = (secret: string): string => {
    try {
      return decodeURIComponent(secret);
    } catch {
      return secret;
    }
  };
  const raw = url.query.split('&').flatMap((pair) => {
    const [name, ...value] = pair.split('=');
    return SECRET_PARAMETERS.some((secret) => secret === name) ? [value.join('=')] : [];
  });
  return [url.password, ...raw].filter(Boolean).flatMap((secret) => [secret, plain(secret)]);
}
