// Where the engine is: a socket of this machine, or a host and port.

import { missingError } from '../../../shared/errors.ts';

const SOCKET = '/var/run/docker.sock';

export type EngineAddress = { socketPath: string } | { host: string; port: number; protocol: 'http' | 'https' };

/** Null: the machine's own. Throws FarmError (exit 3) for an address that is none. */
export function engineAddress(dockerHost: string | null): EngineAddress {
  if (dockerHost === null) return { socketPath: SOCKET };
  if (dockerHost.startsWith('unix://')) return { socketPath: dockerHost.slice(7) || SOCKET };
  try {
    const url = new URL(dockerHost.includes('//') ? dockerHost : `tcp://${dockerHost}`);
    if (['tcp:', 'http:', 'https:'].includes(url.protocol))
      return {
        host: url.hostname,
        port: Number(url.port || (url.protocol === 'https:' ? 2376 : 2375)),
        protocol: url.protocol === 'https:' ? 'https' : 'http',
      };
  } catch {
    // told below
  }
  throw missingError(
    'docker_host',
    `DOCKER_HOST "${dockerHost}" is no address that the Docker client here can use`,
    'use unix:///path/to/docker.sock or tcp://host:port',
  );
}
