// TLS to Redis: the files that REDIS_URL names, read and tried before anything connects with them. Nothing here can switch
// the checking of certificates off.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, createSecureContext } from 'node:tls';
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
  // A file without a certificate would be an authority that vouches for nobody, without a word.
  for (const name of ['ca', 'cert'] as const) {
    const pem = tls[name];
    if (pem !== undefined) attempt(name, () => new X509Certificate(pem));
  }
  attempt('cert and key', () => createSecureContext(tls));
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

function attempt(name: string, use: () => unknown): void {
  try {
    use();
  } catch (error) {
    throw unusable(`what REDIS_URL names as ${name} is not usable: ${messageOf(error)}`, undefined, error);
  }
}

function unusable(what: string, hint = 'ca, cert and key are paths of PEM files', cause?: unknown): FarmError {
  return missingError('redis_tls_files', what, hint, cause);
}

const HANDSHAKE_MS = 2_000;
/** By then a server has said that our certificate is not enough: in TLS 1.3 it does so after the handshake. */
const AFTERTHOUGHT_MS = 500;

/** What TLS itself objects to, asked by a connection that says nothing else: a server that turns us away often does so while we speak, and its reason is lost. Null: nothing, or nobody is there. */
export function tlsObjection(at: { host: string; port: number }, tls: TlsFiles): Promise<string | null> {
  return new Promise((resolve) => {
    let reached = false;
    let agreed = false;
    const socket = connect({ ...at, ...tls });
    const end = (objection: string | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(objection);
    };
    const timer = setTimeout(
      () => end(reached && !agreed ? 'it was reached, and does not answer in TLS' : null),
      HANDSHAKE_MS,
    );
    socket.once('connect', () => {
      reached = true;
    });
    socket.once('secureConnect', () => {
      agreed = true;
      setTimeout(() => end(null), AFTERTHOUGHT_MS);
    });
    socket.on('error', (error) => end(reached ? error.message : null));
  });
}
