// Where Redis is, as connections take it: what REDIS_URL says in ioredis's words.

import type { RedisOptions } from 'ioredis';
import type { Host, RedisAddress } from './address.ts';

/** Longer than any command waits in Redis. */
const UNANSWERED_MS = 30_000;

/** ioredis's options, less the one that its own constructor takes apart. */
export type Connection = Omit<RedisOptions, 'replyMapping'>;

export interface RedisPlace {
  /** For BullMQ and for roles: where to connect; of a cluster, how. */
  options: Connection;
  /** Nodes by which a cluster is found. */
  cluster?: readonly Host[];
  /** For messages: no password in it. */
  address: string;
  embedded: boolean;
}

export function placeOf(address: RedisAddress): RedisPlace {
  const { username, password, tls, family, shown } = address;
  const common: Connection = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === null ? {} : { tls: { ...tls } }),
    ...(family === 0 ? {} : { family }),
  };
  const place = { address: shown, embedded: false };
  switch (address.kind) {
    case 'socket':
      return { ...place, options: { ...common, path: address.path } };
    case 'server':
      return { ...place, options: { ...common, host: address.host, port: address.port, db: address.db } };
    case 'cluster':
      return { ...place, options: common, cluster: address.hosts };
    case 'sentinel':
      return { ...place, options: { ...common, ...sentinelOptions(address) } };
  }
}

function sentinelOptions({ hosts, name, db, tls, sentinel }: RedisAddress & { kind: 'sentinel' }): Connection {
  return {
    sentinels: hosts,
    name,
    db,
    ...(sentinel.username === undefined ? {} : { sentinelUsername: sentinel.username }),
    ...(sentinel.password === undefined ? {} : { sentinelPassword: sentinel.password }),
    ...(tls === null ? {} : { enableTLSForSentinelMode: true, sentinelTLS: { ...tls } }),
    // A master whose machine is gone closes no connection: whoever is not answered for so long asks the Sentinels anew. (The
    // client's own failover detector ends a connection for good that is about to be made when the switch comes.)
    socketTimeout: UNANSWERED_MS,
    sentinelRetryStrategy: (times) => Math.min(100 * times, 1_000),
    // One that was set back to a replica is left at once; what it refused is tried again by whoever asked.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
}
