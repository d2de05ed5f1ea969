// Who works on a run, from who is there: on a machine whose engine does not answer.

import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Crew, findCrew } from '../../src/cli/crew.ts';
import { readConfig } from '../../src/shared/config.ts';
import type { Slots } from '../../src/shared/lane.ts';
import { announce, type RoleName } from '../../src/shared/presence.ts';
import { SHARED_REALM } from '../../src/shared/realm.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
  return () => server.close();
});
afterEach(() => server.redis.flushall());

const ALL = { interactive: 1, rollout: 4, light: 16 };

async function there(
  role: RoleName,
  slots: Slots = {},
  realm = SHARED_REALM,
  key: string | null = null,
): Promise<void> {
  const { stop } = await announce(server.redis, { role, realm, worker: `${role}-${realm}-${key}`, slots, key });
  onTestFinished(stop);
}

async function crew(
  environments: string[],
  verified = 0,
  detach = false,
  more: { key?: string; held?: string | null; alone?: boolean } = {},
): Promise<Crew> {
  const config = readConfig({ DOCKER_HOST: `unix://${server.folder}/no-engine.sock`, REDIS_URL: 'redis://one' });
  const source = { environments: new Set(environments), verified };
  const sandbox = { image: 'rollout-farm/python', runtime: null };
  const { key: wanted = null, held = wanted, alone = false } = more;
  const wish = { run: 'r', sandbox, source, key: { wanted, held }, alone, slots: null, detach };
  return findCrew(config, server.redis, wish);
}

const brought = ({ realm, orders }: Crew): string[] => [realm, ...orders.map((o) => `${o.role} ${o.realm} ${o.run}`)];
const OWN = ['run.r', 'rollout run.r r', 'collect run.r r'];

describe('a run on a machine without an engine', () => {
  it('is the shared workers’ where they have slots for all of it; a collector that is missing is its own', async () => {
    await there('rollout', ALL);
    expect(brought(await crew(['command', 'guess']))).toEqual(['shared', 'collect run.r r']);
    await there('collect');
    expect(brought(await crew(['command', 'guess']))).toEqual(['shared']);
    expect(brought(await crew(['command'], 0, true))).toEqual(['shared']);
    await there('verify', { verify: 64 });
    expect(brought(await crew(['command', 'text'], 1))).toEqual(['shared']);
  });

  it('brings its own where no box is wanted', async () => {
    expect(brought(await crew(['guess']))).toEqual(OWN);
    await there('rollout', { rollout: 4 });
    expect(brought(await crew(['guess']))).toEqual(OWN);
  });

  it('is refused where boxes are wanted and part of it has no slots elsewhere, by the name of what would do', async () => {
    const refused = (...wish: Parameters<typeof crew>): Promise<unknown> => crew(...wish).catch((error) => error);
    const engine = 'start Docker, or run `./farm demo` once: it sets up what is missing; or start ';
    const rollout = './farm worker rollout on a machine that has an engine, with this Redis';
    const both = { code: 'docker_unreachable', exit: 3, hint: engine + rollout };
    expect(await refused(['command'])).toMatchObject(both);
    await there('rollout', ALL, 'run.other');
    expect(await refused(['command'])).toMatchObject(both);
    await there('rollout', { light: 16 });
    expect(await refused(['command', 'guess'])).toMatchObject(both);
    await server.redis.flushall();
    await there('rollout', ALL);
    expect(await refused(['command', 'text'], 1)).toMatchObject({
      hint: `${engine}./farm worker verify, with this Redis`,
    });
    expect(await refused(['command', 'text'], 1, true)).toMatchObject({
      code: 'no_workers',
      message: expect.stringMatching(/there is none with verify slots, and none that collects$/),
    });
  });
});

describe('a run with an AmberTrace key', () => {
  const mine = { key: 'aaaaaaaaaaaaaaaa' };
  const other = 'bbbbbbbbbbbbbbbb';
  const OWN_VERIFIED = ['run.r', 'rollout run.r r', 'verify run.r r', 'collect run.r r'];

  it('is the shared workers’ where those that hold it have slots for all of it, whoever else is there', async () => {
    await there('rollout', ALL, SHARED_REALM, mine.key);
    await there('rollout', ALL, SHARED_REALM, other);
    await there('verify', { verify: 64 }, SHARED_REALM, mine.key);
    await there('collect');
    const found = await crew(['text', 'command'], 1, true, mine);
    expect(brought(found)).toEqual(['shared']);
    expect(found.warnings).toEqual([]);
  });

  it('brings its own where those with the slots hold another or tell of none, and says so', async () => {
    await there('rollout', ALL, SHARED_REALM, mine.key);
    await there('verify', { verify: 64 }, SHARED_REALM, other);
    await there('verify', { verify: 64 });
    await there('collect');
    const found = await crew(['text'], 1, false, mine);
    expect(brought(found)).toEqual(OWN_VERIFIED);
    expect(found.warnings).toEqual([
      'shared workers hold another AmberTrace key (bbbbbb, none that they tell of) than this command (aaaaaa): the run brings its own',
    ]);
    expect(await crew(['text'], 1, true, mine).catch((error) => error)).toMatchObject({
      code: 'no_workers',
      message: expect.stringMatching(/none with verify slots: shared workers hold another AmberTrace key/),
      hint: expect.stringMatching(/with this command’s AMBERTRACE_API_KEY$/),
    });
  });

  it('is nobody’s who rolls out without it, though none of its tasks is verified', async () => {
    await there('rollout', ALL);
    expect(brought(await crew(['guess'], 0, false, mine))).toEqual(OWN);
    expect(await crew(['command'], 0, false, mine).catch((error) => error)).toMatchObject({
      code: 'docker_unreachable',
      hint: expect.stringMatching(
        /or start .*, with this Redis and with this command’s AMBERTRACE_API_KEY \(shared workers hold another .*\(none .*\(aaaaaa\)\)$/,
      ),
    });
  });

  it('goes on with the key that it was opened with: the shared workers’ that hold it, whatever this command has', async () => {
    await there('rollout', ALL, SHARED_REALM, mine.key);
    await there('verify', { verify: 64 }, SHARED_REALM, mine.key);
    expect(brought(await crew(['text', 'command'], 1, false, { ...mine, held: other }))).toEqual([
      'shared',
      'collect run.r r',
    ]);
  });

  it('is refused where it was opened with another key than its own workers would hold, and none that hold it can play all of it', async () => {
    await there('rollout', ALL, SHARED_REALM, mine.key);
    await there('verify', { verify: 64 }, SHARED_REALM, other);
    await there('collect');
    for (const detach of [false, true])
      for (const held of [other, null])
        expect(await crew(['text'], 1, detach, { ...mine, held }).catch((error) => error)).toMatchObject({
          code: 'key_changed',
          exit: 2,
          message: expect.stringMatching(held === null ? /aaaaaa, and there is none here/ : /aaaaaa.*bbbbbb/),
        });
  });

  it('and a verifier that only its own workers reach has those, whoever is there', async () => {
    await there('rollout', ALL, SHARED_REALM, mine.key);
    await there('verify', { verify: 64 }, SHARED_REALM, mine.key);
    await there('collect');
    expect(brought(await crew(['text'], 1, false, { ...mine, alone: true }))).toEqual(OWN_VERIFIED);
  });
});
