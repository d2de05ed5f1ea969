// How container boxes end: by us, by our death, by somebody else's hand, by their own fault; and who is blamed.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { FarmError } from '../../src/shared/errors.ts';
import { BoxLost } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { graderHash, Harness } from '../../src/workers/rollout/sandbox/harness.ts';
import { runnerHash } from '../../src/workers/rollout/sandbox/image.ts';
import { until } from '../support/until.ts';
import { LABELS, LIMITS, run } from './sandbox-contract.ts';
import { checkOf, DOUBLE } from './sandbox-grade-contract.ts';

const docker = async (...args: string[]) => (await promisify(execFile)('docker', args)).stdout.trim();
const containers = async (farm: string) =>
  (await docker('ps', '-aq', '--no-trunc', '--filter', `label=rollout-farm.farm=${farm}`)).split('\n').filter(Boolean);
const never = new AbortController().signal;

const gone = (farm: string) =>
  until(`no container of ${farm} is there`, async () => (await containers(farm)).length === 0, {
    withinMs: 90_000,
    everyMs: 200,
  });

describe('the life of a box', () => {
  const driver = createDockerDriver({ dockerHost: null });
  const farm = `${LABELS.farm}-life`;
  const open = (over = {}) => driver.open(LIMITS, { ...LABELS, farm, ...over }, never);
  const own = () => createDockerDriver({ dockerHost: null });
  const owners: ChildProcess[] = [];

  beforeAll(() => driver.prepare(LIMITS.image));
  afterEach(() => gone(farm));
  afterAll(async () => {
    for (const owner of owners) owner.kill('SIGKILL');
    await driver.close();
  });

  async function startOwner(name: string): Promise<ChildProcess> {
    const file = fileURLToPath(new URL('./sandbox-owner.ts', import.meta.url));
    const code = "import('vite').then((vite) => vite.runnerImport(process.argv[1]))";
    const owner = spawn(process.execPath, ['-e', code, file, name], { stdio: ['ignore', 'pipe', 'inherit'] });
    owners.push(owner);
    await once(owner.stdout!, 'data');
    return owner;
  }

  test('a container carries its owner and its end on its labels, and is hardened', async () => {
    const box = await open({ run: 'run-1', member: '3-1' });
    const [id] = await containers(farm);
    const [facts] = JSON.parse(await docker('inspect', id!));
    expect(facts.Config.Labels).toMatchObject({
      'rollout-farm.farm': farm,
      'rollout-farm.worker': LABELS.worker,
      'rollout-farm.run': 'run-1',
      'rollout-farm.member': '3-1',
    });
    expect(Number(facts.Config.Labels['rollout-farm.expires'])).toBeGreaterThan(Date.now());
    expect(facts.HostConfig).toMatchObject({
      CapDrop: ['ALL'],
      CapAdd: ['SETUID', 'SETGID'],
      SecurityOpt: ['no-new-privileges', expect.stringMatching(/^seccomp=\{"defaultAction":"SCMP_ACT_ERRNO"/)],
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      IpcMode: 'private',
      AutoRemove: true,
      Memory: 256 * 2 ** 20,
      MemorySwap: 256 * 2 ** 20,
      PidsLimit: 132,
      LogConfig: { Type: 'none' },
    });
    expect(facts.Mounts).toEqual([]);
    expect(JSON.stringify([facts.Args, facts.Config.Cmd])).not.toMatch(/\d{5}/);
    expect([box.isolation, box.runnerHash]).toEqual(['fresh', graderHash(runnerHash(), new Harness().hash)]);
    expect(box.startMs).toBeGreaterThan(0);
    await box.close();
    expect(await containers(farm)).toEqual([]);
  });

  test.each([
    [{}],
    [{ memoryMb: 1024, tmpfsMb: 512 }],
    [{ memoryMb: 96, tmpfsMb: 64, pids: 1 }],
    [{ memoryMb: 64, tmpfsMb: 1 }],
  ])('all that its folders can hold fits into its memory beside 48 MB, and it still grades (%j)', async (over) => {
    const box = await driver.open({ ...LIMITS, ...over }, { ...LABELS, farm }, never);
    const [facts] = JSON.parse(await docker('inspect', (await containers(farm))[0]!));
    const folders = facts.HostConfig.Tmpfs as Record<string, string>;
    expect(Object.keys(folders).sort()).toEqual(['/dev/shm', '/farm', '/judge', '/tmp', '/work']);
    const kb = Object.values(folders).map((options) => Number(/size=(\d+)k/.exec(options)?.[1]));
    expect((kb.reduce((sum, one) => sum + one, 0) + 48 * 1024) * 1024).toBeLessThanOrEqual(facts.HostConfig.Memory);
    for (const options of Object.values(folders)) expect(options).toMatch(/nosuid,nodev.*nr_inodes=\d+/);
    for (const warm of [false, true])
      expect(await box.grade(checkOf(DOUBLE, { warm }))).toMatchObject({ passed: true, level: 'apart' });
    await box.close();
  });

  test('a driver that closes takes running and starting boxes along', async () => {
    const lone = own();
    const box = await lone.open(LIMITS, { ...LABELS, farm }, never);
    const refused = expect(run(box, ['sleep', '60'])).rejects.toBeInstanceOf(BoxLost);
    const starting = expect(lone.open(LIMITS, { ...LABELS, farm }, never)).rejects.toMatchObject({ phase: 'start' });
    await lone.close();
    await Promise.all([refused, starting]);
    expect(await containers(farm)).toEqual([]);
    await expect(lone.open(LIMITS, { ...LABELS, farm }, never)).rejects.toMatchObject({ phase: 'start' });
  });

  test('the box of an owner that was killed ends by itself', async () => {
    const name = `${farm}-killed`;
    const owner = await startOwner(name);
    expect(await containers(name)).toHaveLength(1);
    owner.kill('SIGKILL');
    await gone(name);
  });

  test('the box of an owner that stands still ends by itself', async () => {
    const name = `${farm}-stopped`;
    const owner = await startOwner(name);
    const stopped = performance.now();
    owner.kill('SIGSTOP');
    await gone(name);
    expect(performance.now() - stopped).toBeGreaterThan(8_000);
    owner.kill('SIGKILL');
  });

  test('a box ends at its absolute lifetime, whatever runs', async () => {
    const short = createDockerDriver({ dockerHost: null, lifetimeMs: 4_000 });
    const box = await short.open(LIMITS, { ...LABELS, farm }, never);
    await expect(run(box, ['sleep', '60'], { timeoutMs: 60_000 })).rejects.toMatchObject({
      phase: 'run',
      blame: 'engine',
      signature: 'died:76',
    });
    await gone(farm);
    await short.close();
  });

  describe('when it dies', () => {
    test('of a kill through the engine, the engine is blamed', async () => {
      const lone = own();
      const box = await lone.open(LIMITS, { ...LABELS, farm }, never);
      const running = expect(run(box, ['sleep', '60'])).rejects.toMatchObject({ blame: 'engine', signature: 'killed' });
      await docker('kill', ...(await containers(farm)));
      await running;
      await expect(run(box, ['true'])).rejects.toBeInstanceOf(BoxLost);
      await lone.close();
    });

    test('under a command while engine and neighbours are well, the action is blamed, with one signature', async () => {
      const lone = own();
      const neighbour = await lone.open(LIMITS, { ...LABELS, farm: `${farm}-neighbour` }, never);
      for (let turn = 0; turn < 2; turn += 1) {
        const box = await lone.open(LIMITS, { ...LABELS, farm }, never);
        const running = expect(run(box, ['sleep', '60'])).rejects.toMatchObject({
          blame: 'action',
          signature: 'died:137',
        });
        await killRunners(farm);
        await running;
        await box.close();
        await new Promise((resolve) => setTimeout(resolve, 1_200));
      }
      expect(await run(neighbour, ['true'])).toMatchObject({ exitCode: 0 });
      await lone.close();
    });

    test('together with its neighbours, the engine is blamed', async () => {
      const lone = own();
      const boxes = await Promise.all([1, 2].map(() => lone.open(LIMITS, { ...LABELS, farm }, never)));
      const all = boxes.map((box) => expect(run(box, ['sleep', '60'])).rejects.toMatchObject({ blame: 'engine' }));
      await killRunners(farm);
      await Promise.all(all);
      await lone.close();
    });

    test('between commands, the engine is blamed', async () => {
      const lone = own();
      const box = await lone.open(LIMITS, { ...LABELS, farm }, never);
      await killRunners(farm);
      await gone(farm);
      await expect(run(box, ['true'])).rejects.toMatchObject({ blame: 'engine' });
      await lone.close();
    });
  });

  test('a sweep takes the expired and the orphaned of its own farm only', async () => {
    const other = `${farm}-other`;
    const expired = createDockerDriver({ dockerHost: null, lifetimeMs: 1 });
    const asleep = (name: string, worker: string, expires: number) =>
      docker(
        ...['create', '--network', 'none', '--label', `rollout-farm.farm=${name}`],
        ...['--label', `rollout-farm.worker=${worker}`, '--label', `rollout-farm.expires=${expires}`],
        ...[LIMITS.image, 'true'],
      );
    const later = Date.now() + 60_000;
    const kept = await asleep(farm, 'alive', later);
    await asleep(farm, 'alive', Date.now() - 1);
    await asleep(farm, 'dead', later);
    const foreign = await asleep(other, 'dead', 0);
    expect(await driver.sweep(farm, (worker) => worker === 'alive')).toBe(2);
    expect(await containers(farm)).toEqual([kept]);
    expect(await containers(other)).toEqual([foreign]);
    await docker('rm', kept, foreign);
    await expired.close();
  });

  test('an engine that does not answer, and an image that is not there, are named before anything starts', async () => {
    const deaf = createDockerDriver({ dockerHost: 'tcp://127.0.0.1:9' });
    await expect(deaf.prepare(LIMITS.image)).rejects.toMatchObject({ code: 'docker_unreachable', exit: 3 });
    await expect(deaf.prepare(LIMITS.image)).rejects.toThrow(/Docker/);
    await expect(deaf.open(LIMITS, LABELS, never)).rejects.toMatchObject({ phase: 'start', blame: 'engine' });
    await expect(driver.prepare('no-such-image:x')).rejects.toMatchObject({ code: 'image_missing', exit: 3 });
    expect(() => createDockerDriver({ dockerHost: 'ssh://somewhere' })).toThrow(FarmError);
  });

  test('two processes that meet an image for the first time at once make one image for boxes', async () => {
    const name = `rollout-farm-test-twice:${process.pid}`;
    const base = await docker('create', '--network', 'none', LIMITS.image, 'true');
    const id = (await docker('commit', '--change', 'ENV PATH=/usr/bin:/odd', base, name)).slice(7, 19);
    await docker('rm', base);
    const derived = `rollout-farm/box:${id}-${runnerHash()}`;
    const drivers = [own(), own(), own()];
    await Promise.all(drivers.map((one) => one.prepare(name)));
    const boxes = await Promise.all(
      drivers.map((one) => one.open({ ...LIMITS, image: name }, { ...LABELS, farm }, never)),
    );
    for (const box of boxes)
      expect((await run(box, ['sh', '-c', 'echo $PATH'])).stdout.toString()).toBe('/usr/bin:/odd\n');
    await Promise.all(drivers.map((one) => one.close()));
    const all = await docker('images', '-q', '--filter', `label=rollout-farm.box=${derived}`);
    expect(all.split('\n')).toHaveLength(1);
    await docker('rmi', derived, name);
  });

  test('an image that declares a volume is refused: no limit would hold there', async () => {
    const name = `rollout-farm-test-volume:${process.pid}`;
    const base = await docker('create', '--network', 'none', LIMITS.image, 'true');
    await docker('commit', '--change', 'VOLUME /data', base, name);
    await docker('rm', base);
    await expect(driver.prepare(name)).rejects.toMatchObject({ code: 'image_unusable', exit: 3 });
    await docker('rmi', name);
  });

  test('a start that is aborted or cannot be leaves nothing', async () => {
    const fresh = own();
    const control = new AbortController();
    const opening = fresh.open(LIMITS, { ...LABELS, farm }, control.signal);
    setTimeout(() => control.abort(new Error('changed my mind')), 30);
    await expect(opening).rejects.toThrow('changed my mind');
    await expect(fresh.open({ ...LIMITS, memoryMb: 8 }, { ...LABELS, farm }, never)).rejects.toMatchObject({
      phase: 'start',
    });
    expect(await containers(farm)).toEqual([]);
    await fresh.close();
  });

  /** From outside and not through the engine: what a death by its own fault looks like. */
  async function killRunners(name: string): Promise<void> {
    for (const id of await containers(name))
      process.kill(Number(await docker('inspect', '--format', '{{.State.Pid}}', id)), 'SIGKILL');
  }
});
