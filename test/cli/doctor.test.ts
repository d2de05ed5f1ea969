// What doctor says of the engine on a machine that has none, from who is there: whole commands, and no engine.

import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { announceEngine, enginesInUse } from '../../src/shared/permits/engines.ts';
import { announce } from '../../src/shared/presence.ts';
import { SHARED_REALM } from '../../src/shared/realm.ts';
import type { EngineFacts } from '../../src/shared/sandbox.ts';
import { findingOf } from '../support/doctor.ts';
import { TestFarm } from '../support/farm.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
  return () => server.close();
});

let farm: TestFarm;
beforeEach(() => {
  farm = new TestFarm({ REDIS_URL: `unix://${server.place.options.path}` });
  farm.env.DOCKER_HOST = `unix://${farm.data}/no-engine.sock`;
});
afterEach(() => farm.close());

/** A rollout worker whose engine answers. */
async function rollout(worker: string, realm: string): Promise<void> {
  const presence = await announce(server.redis, { role: 'rollout', realm, worker, slots: { rollout: 4 } });
  const facts = { id: `engine-of-${worker}` } as EngineFacts;
  const engine = announceEngine(server.redis, worker, () => Promise.resolve(facts));
  onTestFinished(async () => {
    await engine.stop();
    await presence.stop();
  });
  await until('its engine is known', async () =>
    (await enginesInUse(server.redis)).some((use) => use.worker === worker),
  );
}

const sandbox = () => findingOf(farm, 'sandbox');

describe('doctor on a machine whose engine does not answer', () => {
  it('counts the workers that any run may have, and none that a run has brought for itself', async () => {
    await rollout('of-another-run', 'run.another');
    const alone = await sandbox();
    expect(alone).toMatchObject({ code: 3, finding: { ok: false } });
    expect(alone.finding.found).toMatch(/no live worker is known that has one/);
    await rollout('shared', SHARED_REALM);
    expect(await sandbox()).toMatchObject({
      code: 0,
      finding: { ok: true, found: 'none needed here: rollout workers on this Redis: 1, their engines: 1' },
    });
  });

  it('says that a DOCKER_HOST is wrong which the client here cannot use, also where an engine is elsewhere', async () => {
    await rollout('shared', SHARED_REALM);
    farm.env.DOCKER_HOST = 'ssh://somewhere';
    const { code, finding } = await sandbox();
    expect(code).toBe(3);
    expect(finding).toMatchObject({
      ok: false,
      found: expect.stringMatching(/^DOCKER_HOST "ssh:\/\/somewhere" is no/),
    });
    expect(finding.hint).toMatch(/unix:\/\/.* or tcp:\/\/host:port/);
  });
});
