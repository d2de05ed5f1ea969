// A run whose driver died elsewhere is driven on, whatever this machine's clock says: only the ledger's own counts.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { rm } from '../../src/cli/verbs/rm.ts';
import { Adopter } from '../../src/producer/adopter.ts';
import { openRun } from '../../src/producer/open-run.ts';
import { readConfig } from '../../src/shared/config.ts';
import type { RunLedger } from '../../src/shared/ledger/run-ledger.ts';
import { readStatus } from '../../src/shared/ledger/run-status.ts';
import { runKey } from '../../src/shared/ledger/script.ts';
import { processIdentity } from '../../src/shared/process-identity.ts';
import { openStoreAddress } from '../../src/shared/store/open.ts';
import type { Store } from '../../src/shared/store/store.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { guessTasks, readRunSpec } from '../support/spec.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
const ELSEWHERE = 'another-machine.1.1';

let server: TestRedis;
let folder: string;
let store: Store;
beforeAll(async () => {
  server = await startRedis();
  folder = mkdtempSync(path.join(tmpdir(), 'farm-test-adopter-'));
  store = await openStoreAddress(path.join(folder, 'store'));
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  vi.stubEnv('REDIS_URL', `unix://${path.join(server.folder, 'redis.sock')}`);
  vi.stubEnv('FARM_DATA', folder);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

/** This process's wall clock goes wrong; its timers and Redis's clock do not. */
function clockOff(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
}

async function openElsewhere(run: string, realm: string): Promise<RunLedger> {
  const config = { ...readConfig({ FARM_DATA: folder }), store: store.address };
  const spec = { name: run, group_size: 2, tasks: guessTasks(2), policy: { kind: 'scripted', actions: [4] } };
  const read = await readRunSpec(folder, config, spec);
  const { redis } = server;
  return (await openRun({ run, redis, store, realm, owner: ELSEWHERE, key: null, ...read })).ledger;
}

/** Its ten seconds are over since a moment ago. */
async function letGo(run: string): Promise<void> {
  const [seconds] = await server.redis.time();
  await server.redis.hset(`${runKey(run)}:run`, 'driver_until', Number(seconds) * 1000 - 1);
}

function adopt(realm: string): Adopter {
  const log = pino({ level: 'silent' });
  return new Adopter({ redis: server.redis, place: server.place, realm, log });
}

describe.each([
  ['an hour behind', -HOUR_MS],
  ['an hour ahead', HOUR_MS],
])('where this machine’s clock is %s', (name, off) => {
  const id = (what: string): string => `${what}-${name.replaceAll(' ', '-')}`;

  it('a run whose driver died elsewhere is driven on at once, and one that is driven is left alone', async () => {
    const realm = id('realm');
    const driven = await openElsewhere(id('a-driven'), realm);
    const orphan = await openElsewhere(id('b-orphan'), realm);
    await letGo(orphan.run);
    clockOff(off);
    const adopter = adopt(realm);
    try {
      // The driven one stands before it: it has been looked at by then.
      await until('the orphan is adopted', async () => (await orphan.field('driver')) === processIdentity());
      expect(await driven.field('driver')).toBe(ELSEWHERE);
    } finally {
      await adopter.drain();
    }
  });

  it('the rate counts from when the run was opened, by Redis’s clock', async () => {
    clockOff(off);
    const ledger = await openElsewhere(id('rate'), id('rates'));
    const [seconds] = await server.redis.time();
    const since = Number(await ledger.field('sitting_since')) / 1000;
    expect(Math.abs(since - Number(seconds))).toBeLessThan(30);
    await until('there is a rate', async () => (await readStatus(server.redis, ledger.run))?.rate_per_s === 0);
  });

  it('rm refuses a run that is driven, and removes one whose driver’s lease is over', async () => {
    const ledger = await openElsewhere(id('rm'), id('rms'));
    vi.stubEnv('FARM_STORE', store.address);
    clockOff(off);
    await expect(rm({ run: ledger.run })).rejects.toMatchObject({ code: 'run_at_work' });
    expect(await ledger.field('driver')).toBe(ELSEWHERE);
    await letGo(ledger.run);
    expect(await rm({ run: ledger.run })).toBe(0);
    expect(await server.redis.keys(`${runKey(ledger.run)}:*`)).toEqual([]);
  });
});
