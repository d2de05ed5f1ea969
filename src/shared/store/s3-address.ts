// An S3 address and all that may be said in it: `s3://bucket/prefix?region=…&endpoint=…&style=path|virtual&sse=AES256|aws:kms&kms_key=…`.
// What is not said comes from the environment. Pure; refuses secrets, unknown settings, and names that no bucket can have.

import { isSecretKey } from '../spec/secrets.ts';
import { keySegments } from './store-key.ts';

const SSE = ['AES256', 'aws:kms'] as const;
const STYLES = ['path', 'virtual'] as const;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
/** With the longest key below it, within S3's 1,024 bytes. */
const PREFIX_BYTES = 600;

export interface S3Address {
  bucket: string;
  /** Empty, or ends with a slash. */
  prefix: string;
  region: string | null;
  endpoint: string | null;
  style: (typeof STYLES)[number] | null;
  sse: (typeof SSE)[number] | null;
  kmsKey: string | null;
}

export function isS3Address(text: string): boolean {
  return /^s3:\/\//i.test(text);
}

export function parseS3Address(text: string): { address: S3Address } | { fault: string } {
  const parts = /^s3:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(text);
  if (!parts) return { fault: 'is not s3://bucket/prefix' };
  const [, bucket = '', path = '', query = ''] = parts;
  if (bucket.includes('@'))
    return { fault: 'has credentials in it; they belong in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY' };
  if (!BUCKET.test(bucket) || bucket.includes('..'))
    return {
      fault: `${JSON.stringify(bucket)} is not the name of a bucket: 3 to 63 small letters, digits, dots and hyphens`,
    };
  const prefix = path.replace(/\/+$/, '');
  if (prefix !== '' && !isPrefix(prefix))
    return { fault: `${JSON.stringify(prefix)} is not a prefix: no empty part, ".", ".." or control characters` };
  const settings = readQuery(new URLSearchParams(query));
  if ('fault' in settings) return settings;
  return { address: { bucket, prefix: prefix === '' ? '' : `${prefix}/`, ...settings } };
}

function isPrefix(prefix: string): boolean {
  try {
    return keySegments(prefix).length > 0 && Buffer.byteLength(prefix) <= PREFIX_BYTES;
  } catch {
    return false;
  }
}

type Settings = Omit<S3Address, 'bucket' | 'prefix'>;

function readQuery(query: URLSearchParams): Settings | { fault: string } {
  const settings: Settings = { region: null, endpoint: null, style: null, sse: null, kmsKey: null };
  for (const name of new Set(query.keys())) {
    const [value = '', ...more] = query.getAll(name);
    const fault = more.length > 0 ? `gives ${name} twice` : setOne(settings, name, value);
    if (fault !== null) return { fault };
  }
  if (settings.kmsKey !== null && settings.sse !== 'aws:kms') return { fault: 'gives kms_key without sse=aws:kms' };
  return settings;
}

/** What is wrong with it, or null. */
function setOne(settings: Settings, name: string, value: string): string | null {
  switch (name) {
    case 'region':
      settings.region = value;
      return /^[a-z0-9-]{1,64}$/.test(value) ? null : `region=${value} is not the name of a region`;
    case 'endpoint': {
      settings.endpoint = value;
      const fault = endpointFault(value);
      return fault === null ? null : `endpoint=${value} ${fault}`;
    }
    case 'style':
      settings.style = STYLES.find((style) => style === value) ?? null;
      return settings.style === null ? `style=${value} is unknown; allowed: ${STYLES.join(', ')}` : null;
    case 'sse':
      settings.sse = SSE.find((sse) => sse === value) ?? null;
      return settings.sse === null ? `sse=${value} is unknown; allowed: ${SSE.join(', ')}` : null;
    case 'kms_key':
      settings.kmsKey = value;
      return value === '' ? 'kms_key is empty' : null;
    default:
      if (isSecretKey(name) || /access_?key|session/i.test(name))
        return `has credentials in it (${name}); they belong in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`;
      return `has an unknown setting ${JSON.stringify(name)}; allowed: region, endpoint, style, sse, kms_key`;
  }
}

/** What is wrong with an endpoint, as it stands in an address or in S3_ENDPOINT; null if nothing is. */
export function endpointFault(text: string): string | null {
  try {
    const url = new URL(text);
    if (!/^https?:$/.test(url.protocol)) return 'is not an http or https address';
    if (url.username !== '' || url.password !== '') return 'has credentials in it';
    return url.search === '' && url.hash === '' ? null : 'has a query or fragment';
  } catch {
    return 'is not an address, such as https://s3.example.com:9000';
  }
}

export function formatS3Address(address: S3Address): string {
  const query = new URLSearchParams();
  const { region, endpoint, style, sse, kmsKey } = address;
  for (const [name, value] of Object.entries({ region, endpoint, style, sse, kms_key: kmsKey }))
    if (value !== null) query.set(name, value);
  const settings = query.size === 0 ? '' : `?${query}`;
  return `s3://${address.bucket}${address.prefix === '' ? '' : `/${address.prefix.slice(0, -1)}`}${settings}`;
}
