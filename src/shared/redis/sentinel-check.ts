// What the Sentinels say: which server is the master of that name, and how many watch it. Then that server is asked.

import type { Redis } from 'ioredis';
import { missingError } from '../errors.ts';
import { infoField } from './nodes.ts';
import type { Connection, RedisPlace } from './place.ts';
import { asked, telling } from './probe.ts';
import { type CheckedRedis, checkDatabase, checkServers } from './server-check.ts';

/** Any of the Sentinels may know the master; that none does has its reason in what the last one said. */
export async function checkSentinels(place: RedisPlace): Promise<CheckedRedis> {
  const { sentinels = [], name = '', sentinelUsername, sentinelPassword, sentinelTLS, db, tls, family } = place.options;
  const { username, password } = place.options;
  const login = {
    ...(sentinelUsername ? { username: sentinelUsername } : {}),
    ...(sentinelPassword ? { password: sentinelPassword } : {}),
  };
  let refusal: unknown = null;
  for (const { host = '127.0.0.1', port = 26_379 } of sentinels) {
    const at = { ...place, address: `${place.address} (Sentinel ${host}:${port})` };
    const to = { host, port, ...login, ...(sentinelTLS ? { tls: sentinelTLS } : {}), family, enableReadyCheck: false };
    try {
      const { master, others, quorum } = await asked(at, to as Connection, (redis) => askSentinel(redis, at, name));
      const server = { ...master, username, password, db, tls, family };
      const shape = `master ${name} of ${others + 1} Sentinel${others === 0 ? '' : 's'} (quorum ${quorum})`;
      const reached = { ...place, address: `${master.host}:${master.port}, which is ${name} of ${place.address}` };
      const only = others === 0 ? [`only one Sentinel watches ${name}: nobody agrees with it on a failover`] : [];
      return await asked(reached, server as Connection, async (redis) => {
        const info = await redis.info();
        await checkDatabase(redis, { ...reached, options: server as Connection });
        const checked = await checkServers(reached, [{ redis, where: reached.address, info }], shape);
        return { ...checked, warnings: [...only, ...checked.warnings] };
      });
    } catch (error) {
      refusal = telling(refusal, error);
    }
  }
  throw refusal ?? missingError('redis_url', 'REDIS_URL names no Sentinel');
}

async function askSentinel(
  redis: Redis,
  place: RedisPlace,
  name: string,
): Promise<{ master: { host: string; port: number }; others: number; quorum: number }> {
  const info = await redis.info('server');
  if (infoField(info, 'redis_mode') !== 'sentinel')
    throw missingError(
      'redis_not_sentinel',
      `Redis at ${place.address} is no Sentinel`,
      'redis+sentinel:// names the Sentinels, by their own port (26379), not the servers',
    );
  const address = (await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as [string, string] | null;
  if (address === null) {
    const known = (await redis.call('SENTINEL', 'MASTERS')) as unknown[];
    const names = known.map((master) => fieldsOf(master).name).filter(Boolean);
    throw missingError(
      'redis_sentinel_name',
      `the Sentinels at ${place.address} know no master ${name}`,
      `they know ${names.join(', ') || 'none'}`,
    );
  }
  const fields = fieldsOf(await redis.call('SENTINEL', 'MASTER', name));
  return {
    master: { host: address[0], port: Number(address[1]) },
    others: Number(fields['num-other-sentinels'] ?? 0),
    quorum: Number(fields.quorum ?? 0),
  };
}

/** A map, as either protocol gives it. */
function fieldsOf(answer: unknown): Record<string, string> {
  const flat = (Array.isArray(answer) ? answer : Object.entries(answer ?? {})).flat().map(String);
  const fields: Record<string, string> = {};
  for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string;
  return fields;
}
