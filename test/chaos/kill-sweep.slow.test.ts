// A whole farm is killed at a call of a script or a request to the store, before it is done or before it is answered, and the
// same command goes on. In one process every write is tried (kill-at-any-write.slow.test.ts); here some are, with real processes.

import pLimit from 'p-limit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';
import { TestFarm } from '../support/farm.ts';
import { killAll } from '../support/processes.ts';
import { startRedis } from '../support/redis-server.ts';
import { refillSpec } from '../support/refill-spec.ts';
import { expectRefilled } from '../support/refilled-groups.ts';
import { S3Proxy } from '../support/s3-proxy.ts';
import { startVersitygw, type Versitygw } from '../support/s3-server.ts';
import { type Fate, ScriptGate } from '../support/script-gate.ts';
import { Seeded } from '../support/seeded.ts';
import { until } from '../support/until.ts';
import { succeed } from '../support/whole-run.ts';

/** How many farms are killed; with `SWEEP=all` one at each of the places. */
const SAMPLE = 4;
const AT_ONCE = 4;

/** What the ledger keeps of a run that is over, and what is the farm’s own: workers that died are forgotten a minute later. */
const LEFT_OF_A_RUN = /^farm:\{d\}:(run|closed|out|causes|late)$|^farm:(id|runs|workers|engines)$/;

interface Place {
  /** A script of the ledger by its name, or a request to the store by its method and what its key looks like. */
  what: string | { method: string; key: RegExp };
  nth: number;
  /** It is done, and nobody hears of it. */
  done: boolean;
  /** Redis is killed too, and comes back on its folder. */
  redis: boolean;
}

const SCRIPTS: [string, ...number[]][] = [
  ['open-run', 1],
  ['set-state', 1],
  ['drive', 1, 2],
  ['open-groups', 1, 4],
  ['open-spares', 1, 2],
  ['due', 1, 7],
  ['begin', 1, 9],
  ['accept', 1, 2, 5, 8],
  ['fix-shard', 1, 2, 3],
  ['commit', 1, 2],
  ['set-field', 1, 2],
];
const REQUESTS: [string, RegExp, ...number[]][] = [
  ['PUT', /objects\/sha256/, 1, 2],
  ['PUT', /objects\/packs/, 1, 2, 3],
  ['PUT', /index\.json\.gz/, 1, 2],
  ['PUT', /jsonl\.gz/, 1, 2],
  ['PUT', /manifest\.json/, 1],
];

function allPlaces(): Place[] {
  const named: { what: Place['what']; nth: number }[] = [
    ...SCRIPTS.flatMap(([what, ...times]) => times.map((nth) => ({ what, nth }))),
    ...REQUESTS.flatMap(([method, key, ...times]) => times.map((nth) => ({ what: { method, key }, nth }))),
  ];
  return named.flatMap((at, i) => [true, false].map((done, j) => ({ ...at, done, redis: (i + j) % 3 === 0 })));
}

function somePlaces(): Place[] {
  const chance = new Seeded(11);
  const [scripts, requests] = [true, false].map((script) =>
    allPlaces().filter(({ what }) => (typeof what === 'string') === script),
  );
  return Array.from({ length: SAMPLE }, (_, i) => chance.pick((i % 2 === 0 ? scripts : requests) as Place[]));
}

let s3: Versitygw;
beforeAll(async () => {
  s3 = await startVersitygw();
});
afterAll(() => s3.close());

function linesOf(results: string): GroupRecord[] {
  const lines = results.split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as GroupRecord);
}

let prefixes = 0;
async function killedAt(place: Place): Promise<void> {
  const redis = await startRedis();
  const gate = await ScriptGate.open(String(redis.place.options.path));
  const proxy = await S3Proxy.start(s3.port);
  const [S3_ENDPOINT, FARM_STORE] = [proxy.endpoint, `s3://${s3.bucket}/killed-${++prefixes}`];
  const farm = new TestFarm({ ...s3.env, S3_ENDPOINT, FARM_STORE, REDIS_URL: gate.url });
  try {
    const { spec, groups, expected } = refillSpec(4, (name, content) => farm.file(name, content));
    const file = farm.file('run.json', { ...spec, limits: { in_flight: 4 } });
    let seen = 0;
    let fell = false;
    const fall = (): void => {
      fell = true;
      killAll(farm.processes);
    };
    const isIt = (fits: boolean): boolean => fits && !fell && ++seen === place.nth;
    const { what } = place;
    if (typeof what === 'string')
      gate.fate = (script): Fate => {
        if (!isIt(script === what)) return 'pass';
        if (place.done) return { lose: fall };
        fall();
        return 'hold';
      };
    else
      proxy.misdeed = ({ method, path }) => {
        if (!isIt(method === what.method && what.key.test(path))) return null;
        if (place.done) return { kind: 'lose_answer', done: fall };
        fall();
        return { kind: 'hang' };
      };
    const killed = farm.start('run', file, '--run-id', 'd');
    expect((await killed.ended).code, killed.stderr).toBeNull();
    await until('everything is killed', () => {
      killAll(farm.processes);
      return farm.processes.length === 0;
    });
    if (place.redis) await redis.restart();
    const before = await farm.run('results', 'd');
    const opened = (await redis.redis.hexists('farm:{d}:run', 'state')) === 1;
    expect(before.code, before.stderr).toBe(opened ? 0 : 2);

    await succeed(farm, 'run', file, '--run-id', 'd', '--json');
    const after = await succeed(farm, 'results', 'd');
    expect(after.startsWith(before.stdout)).toBe(true);
    const check = JSON.parse(await succeed(farm, 'verify-run', 'd', '--json')) as unknown;
    expect(check).toMatchObject({ ok: true, faults: [], groups, members: 2 * groups });
    expectRefilled(linesOf(after), expected);
    await farm.nothingLeft();
    const left = await redis.redis.keys('*');
    expect(left.filter((key) => !LEFT_OF_A_RUN.test(key))).toEqual([]);
  } finally {
    await farm.close();
    await Promise.all([gate.close(), proxy.close()]);
    await redis.close();
  }
}

it('goes on after a kill at a script or a request, as if nothing had been', async () => {
  const places = process.env.SWEEP === 'all' ? allPlaces() : somePlaces();
  const atOnce = pLimit(AT_ONCE);
  const tried = places.map((place) =>
    atOnce(() =>
      killedAt(place).catch((cause: unknown) => {
        const { what, ...rest } = place;
        const name = typeof what === 'string' ? what : `${what.method} ${what.key}`;
        throw new Error(`killed at ${name} ${JSON.stringify(rest)}`, { cause });
      }),
    ),
  );
  const failed = (await Promise.allSettled(tried)).flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  expect(failed).toEqual([]);
});
