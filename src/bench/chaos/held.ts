// Who holds which member, as the ledger has it: read from outside, without changing anything.

import { runKey } from '../../shared/ledger/script.ts';
import type { Redis } from '../../shared/redis/client.ts';

export interface Held {
  /** group-member */
  id: string;
  worker: string;
  token: string;
}

export async function heldBy(redis: Redis, run: string, whose: (worker: string) => boolean): Promise<Held[]> {
  const key = runKey(run);
  const ids = await redis.zrange(`${key}:flight`, '0', '-1');
  const held = await Promise.all(
    ids.map(async (id): Promise<Held | null> => {
      const [group, member] = id.split('-') as [string, string];
      const [worker, token] = await redis.hmget(`${key}:g:${group}`, `${member}.w`, `${member}.t`);
      return worker && token ? { id, worker, token } : null;
    }),
  );
  return held.filter((h) => h !== null).filter((h) => whose(h.worker));
}
