// TLS to Redis: the files that REDIS_URL names, read and tried before anything connects with them. Nothing here can switch
// the checking of certificates off.

import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { type FarmError, messageOf, missingError } from '../errors.ts';

const file = z.string().min(1).optional();
export const tlsParameters = {
  /** PEM; whom to believe beside nobody else. */
  ca: file,
  /** PEM; who we are, where the server wants to know. */
  cert: file,
  key: file,
  /** The name in the server's certificate, where it is not the host's. */
  servername: file,
};

export interface TlsFiles {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
  servername?: string;
}

type Given = { [Name in keyof typeof tlsParameters]?: string | undefined };

export function readTls({ ca, cert, key, servername }: Given): TlsFiles {
  if ((cert === undefined) !== (key === undefined))
    throw unusable(`REDIS_URL has ${cert ? 'cert and no key' : 'key and no cert'}`, 'a client certificate needs both');
  const tls: TlsFiles = {};
  for (const [name, path] of [
    ['ca', ca],
    ['cert', cert],
    ['key', key],
  ] as const)
    if (path !== undefined) tls[name] = readPem(name, path);
  for (const name of ['ca', 'cert'] as const) if (tls[name]) attempt(name, { [name]: tls[name] });
  attempt('cert and key', tls);
  if (servername !== undefined) tls.servername = servername;
  return tls;
}

function readPem(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw unusable(`the file that REDIS_URL names as ${name} cannot be read: ${messageOf(error)}`, undefined, error);
  }
}

function attempt(name: string, tls: TlsFiles): void {
  try {
    createSecureContext(tls);
  } catch (error) {
    throw unusable(`what REDIS_URL names as ${name} is not usable: ${messageOf(error)}`, undefined, error);
  }
}

function unusable(what: string, hint = 'ca, cert and key are paths of PEM files', cause?: unknown): FarmError {
  return missingError('redis_tls_files', what, hint, cause);
}
