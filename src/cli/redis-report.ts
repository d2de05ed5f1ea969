// What `doctor` says of Redis: what it is (a server, a master that Sentinels name, a cluster), how it is reached, what it
// keeps, and how full it is.

import type { ConnectedRedis } from '../shared/redis/connect.ts';
import { readMemory, sayFull } from '../shared/redis/memory.ts';

/** One line; what loses a ledger is in capitals. */
export async function redisReport({ redis, place, checked }: ConnectedRedis): Promise<string> {
  const { username, tls } = place.options;
  const memory = await readMemory(redis);
  const mb = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MB`;
  return [
    `${place.address}: version ${checked.version}`,
    checked.shape,
    ...(tls === undefined ? [] : [tls.cert === undefined ? 'TLS' : 'TLS with a client certificate']),
    ...(username ? [`user ${username}`] : []),
    `AOF ${checked.appendOnly ? 'on' : 'OFF: a crash loses the ledger'}`,
    checked.evicts || 'eviction policy unknown',
    memory.maxBytes === 0
      ? `${mb(memory.usedBytes)} used, no maxmemory`
      : `${mb(memory.usedBytes)} of ${mb(memory.maxBytes)}${sayFull(memory) === null ? '' : ': above the high-water mark'}`,
  ].join(', ');
}
