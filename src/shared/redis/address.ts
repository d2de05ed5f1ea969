// REDIS_URL read: one server, a server that Sentinels name, or a cluster; with TLS or without; as whom. Whatever is wrong
// with it is said before anything is asked, with what is allowed, and never with a secret in it.

import { z } from 'zod';
import { type FarmError, missingError } from '../errors.ts';
import { readTls, type TlsFiles, tlsParameters } from './tls.ts';
import { type RedisUrl, splitRedisUrl } from './url.ts';

export interface Host {
  host: string;
  port: number;
}

interface Login {
  username?: string;
  password?: string;
}

interface Common extends Login {
  /** Null: no TLS. */
  tls: TlsFiles | null;
  /** 0 for both kinds. */
  family: 0 | 4 | 6;
  /** For messages: no login in it. */
  shown: string;
}

export type RedisAddress = Common &
  (
    | { kind: 'socket'; path: string }
    | { kind: 'server'; host: string; port: number; db: number }
    | { kind: 'sentinel'; hosts: Host[]; name: string; db: number; sentinel: Login }
    | { kind: 'cluster'; hosts: Host[] }
  );

const FORMS =
  'redis://:password@host:6379/0 (or user:password@…), redis+sentinel://…@host:26379,host:26379/NAME/0, redis+cluster://…@host:6379,host:6379, each with rediss for TLS, or unix:///path; in a password, write % @ / # as %25 %40 %2F %23';
const SCHEME = /^(rediss?)(?:[+-](sentinel|cluster))?$/;
const PORTS = { server: 6379, sentinel: 26379, cluster: 6379 } as const;
const MAX_DATABASE = 1_000_000;

const parametersSchema = z.strictObject({
  ...tlsParameters,
  family: z.enum(['0', '4', '6']).optional(),
  sentinel_username: z.string().min(1).optional(),
  sentinel_password: z.string().min(1).optional(),
});
type Parameters = z.infer<typeof parametersSchema>;

/** Throws FarmError `redis_url` or `redis_tls_files` (exit 3). */
export function readRedisUrl(text: string): RedisAddress {
  const url = splitRedisUrl(text);
  if (url === null) throw wrong('is not a URL');
  const login = loginOf(url);
  if (url.scheme === 'unix') return socketOf(url, login);
  const scheme = SCHEME.exec(url.scheme);
  if (scheme === null) throw wrong(`begins with ${url.scheme}://, which is not known`);
  const secure = scheme[1] === 'rediss';
  const kind = (scheme[2] ?? 'server') as 'server' | 'sentinel' | 'cluster';
  // A bare slash in the password ends the hosts, and what is left of it looks like a database.
  const hosts = url.hosts.map((host) => hostOf(host, PORTS[kind]));
  const parameters = parametersOf(url.query, kind, secure);
  const common = {
    ...login,
    tls: secure ? readTls(parameters) : null,
    family: Number(parameters.family ?? 0) as 0 | 4 | 6,
    shown: `${url.scheme}://${url.hosts.join(',')}${url.path === '' ? '' : `/${url.path}`}`,
  };
  if (kind === 'server') {
    if (hosts.length > 1) throw wrong('names several hosts: that is for redis+sentinel:// and redis+cluster://');
    return { kind, ...common, ...(hosts[0] as Host), db: databaseOf(url.path) };
  }
  if (kind === 'cluster') {
    if (!/^\/?0?$/.test(url.path)) throw wrong('names a database: a cluster has only the first one');
    return { kind, ...common, hosts };
  }
  const [name = '', database = '', ...more] = url.path.split('/');
  if (!/^[A-Za-z0-9._-]+$/.test(name) || more.length > 0)
    throw wrong('does not say which master the Sentinels are asked for: …/NAME or …/NAME/0');
  const { sentinel_username: username, sentinel_password: password } = parameters;
  const sentinel = { ...(username ? { username } : {}), ...(password ? { password } : {}) };
  return { kind, ...common, hosts, name, db: databaseOf(database), sentinel };
}

function wrong(what: string, hint = `it looks like ${FORMS}`): FarmError {
  return missingError('redis_url', `REDIS_URL ${what}`, hint);
}

function loginOf({ username, password }: RedisUrl): Login {
  try {
    return {
      ...(username ? { username: decodeURIComponent(username) } : {}),
      ...(password ? { password: decodeURIComponent(password) } : {}),
    };
  } catch {
    throw wrong('has a name or password that is not percent-encoded', 'write % as %25');
  }
}

function socketOf(url: RedisUrl, login: Login): RedisAddress {
  const path = `/${url.path}`;
  if (url.hosts.join() !== '' || url.path === '')
    throw wrong('names no socket', 'it looks like unix:///run/redis.sock');
  return { kind: 'socket', ...login, tls: null, family: 0, path, shown: `unix://${path}` };
}

function hostOf(text: string, port: number): Host {
  const parts = /^(?:\[([0-9a-f:.]+)\]|([^:[\]@\s]*))(?::(\d{1,5}))?$/i.exec(text);
  const given = Number(parts?.[3] ?? port);
  if (parts === null || given < 1 || given > 65_535)
    throw wrong('has a host that is none, or a port that is no number');
  return { host: parts[1] ?? (parts[2] || '127.0.0.1'), port: given };
}

function databaseOf(path: string): number {
  if (/^\d*$/.test(path) && Number(path) <= MAX_DATABASE) return Number(path);
  throw wrong('names a database that is not a number');
}

function parametersOf(query: string, kind: RedisAddress['kind'], secure: boolean): Parameters {
  const pairs = [...new URLSearchParams(query)];
  const twice = pairs.find(([name], i) => pairs.findIndex(([other]) => other === name) !== i);
  if (twice) throw wrong(`has the parameter ${twice[0]} twice`);
  const given = parametersSchema.safeParse(Object.fromEntries(pairs));
  const allowed = `allowed: family=0|4|6; with TLS ${Object.keys(tlsParameters).join(', ')}; of Sentinels sentinel_username, sentinel_password`;
  if (!given.success) {
    const issue = given.error.issues[0];
    const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : issue?.path.join('.');
    throw wrong(`has a parameter that is not known or not usable: ${unknown}`, allowed);
  }
  const used = pairs.map(([name]) => name);
  const idle = used.find((name) => name in tlsParameters && !secure);
  if (idle) throw wrong(`has ${idle}, but no TLS`, 'with TLS it begins with rediss');
  const stray = used.find((name) => name.startsWith('sentinel_') && kind !== 'sentinel');
  if (stray) throw wrong(`has ${stray}, but names no Sentinels`, allowed);
  return given.data;
}
