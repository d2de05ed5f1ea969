// The pool over the real engine: boxes that are there at once, what the engine's troubles mean, and that nothing is left.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { processIdentity } from '../../../../src/shared/process-identity.ts';
import type { Box, SandboxDriver, SandboxLimits } from '../../../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../../../src/workers/rollout/sandbox/docker.ts';
import { localGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createOwnPool, ownWorker } from '../../../../src/workers/rollout/sandbox/own-pool.ts';
import { createPool } from '../../../../src/workers/rollout/sandbox/pool.ts';
import type { ShelfBounds } from '../../../../src/workers/rollout/sandbox/shelf.ts';
import { EngineProxy } from '../../../support/engine-proxy.ts';
import { askEngine, containersOf } from '../../../support/outside.ts';
import { until } from '../../../support/until.ts';
import { bytes, LABELS, LIMITS, python, run, sandboxContract } from '../../sandbox-contract.ts';
import { checkOf, DOUBLE, gradeContract, graded } from '../../sandbox-grade-contract.ts';

const docker = async (...args: string[]) => (await promisify(execFile)('docker', args)).stdout.trim();
const farm = `${LABELS.farm}-pool`;

function poolOver(dockerHost: string | null, bounds: Partial<ShelfBounds> = {}): SandboxDriver {
  const driver = createDockerDriver({ dockerHost, startsAtOnce: 16 });
  return createPool(driver, () => localGate(driver), bounds);
}
const open = (pool: SandboxDriver, over: Partial<SandboxLimits> = {}, name = farm): Promise<Box> =>
  pool.open({ ...LIMITS, ...over }, { ...LABELS, farm: name }, new AbortController().signal);
const gone = (name: string, withinMs = 90_000) =>
  until(`no container of ${name}`, async () => (await containersOf(name)).length === 0, { withinMs, everyMs: 200 });

sandboxContract('a pool over docker', () => poolOver(null));
gradeContract('a pool over docker', () => poolOver(null), { apart: 'apart', 'in-process': 'in-process' });

describe('a pool over the engine', () => {
  beforeAll(() => createDockerDriver({ dockerHost: null }).prepare(LIMITS.image));
  afterAll(async () => {
    expect(await containersOf(farm)).toEqual([]);
  });

  test('gives a box at once while it holds, with its owner on the container’s labels, and leaves none', async () => {
    const pool = poolOver(null);
    const waits: number[] = [];
    for (let turn = 0; turn < 30; turn += 1) {
      const asked = performance.now();
      const box = await open(pool);
      waits.push(performance.now() - asked);
      expect(box.isolation).toBe('fresh');
      expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', exitCode: 0 });
      await box.close();
      await until('one stands ready', async () => turn < 8 || (await running(farm)) > 0);
    }
    const late = waits.slice(10).sort((a, b) => a - b);
    // On a quick machine in a few milliseconds; on any, in a small part of what the first had to wait for its start.
    expect(late[Math.floor(late.length / 2)]).toBeLessThan((waits[0] as number) / 3);
    const found = await askEngine<{ Labels: Record<string, string> }[]>(
      `/containers/json?filters=${encodeURIComponent(JSON.stringify({ label: [`rollout-farm.farm=${farm}`] }))}`,
    );
    expect(found.length).toBeGreaterThan(0);
    for (const { Labels } of found) {
      expect(Labels['rollout-farm.worker']).toBe(LABELS.worker);
      expect(Number(Labels['rollout-farm.expires'])).toBeGreaterThan(Date.now());
      expect(Labels['rollout-farm.run']).toBeUndefined();
    }
    await pool.close();
    expect(await containersOf(farm)).toEqual([]);
  });

  test('hands a box on within its run: as new, and said to be so', async () => {
    const pool = poolOver(null, { ahead: 0 });
    onTestFinished(() => pool.close());
    const first = await open(pool, { recycle: 'r' });
    expect(first.isolation).toBe('recycled');
    await first.write(bytes({ 'sitecustomize.py': 'raise SystemExit(7)' }));
    await python(first, 'import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass');
    const [container] = await containersOf(farm);
    await first.close();
    const second = await open(pool, { recycle: 'r' });
    expect(await containersOf(farm)).toEqual([container]);
    expect(await python(second, 'import os; print(os.listdir("."))')).toMatchObject({ exitCode: 0 });
    expect((await run(second, ['sh', '-c', 'ls -d /proc/[0-9]*'])).stdout.toString().split('\n')).toHaveLength(3);
    await second.close();
  });

  test.each([
    ['prepared', true],
    ['plain', false],
  ])('hands a box on with its %s interpreter, which the next grade finds as it was', async (_, warm) => {
    const pool = poolOver(null, { ahead: 0 });
    onTestFinished(() => pool.close());
    for (let turn = 0; turn < 4; turn += 1) {
      const box = await open(pool, { recycle: 'r' });
      const spoil = turn === 1 ? 'import builtins\nbuiltins.AssertionError = ValueError\n' : '';
      const wrong = turn === 2;
      const solution = `${spoil}${wrong ? DOUBLE.replace('2 * n', '3 * n') : DOUBLE}`;
      const grade = graded(await box.grade(checkOf(solution, { kind: 'in-process', warm })));
      expect({ turn, passed: grade.passed }).toEqual({ turn, passed: !wrong });
      await box.close();
      expect(await containersOf(farm)).toHaveLength(1);
    }
  });

  test('blames an episode for its own memory alone: an earlier one’s shortage is not in the signature of its death', async () => {
    const pool = poolOver(null, { ahead: 0 });
    onTestFinished(() => pool.close());
    const first = await open(pool, { recycle: 'r' });
    expect(await python(first, 'x = []\nwhile True: x.append(bytearray(10**7))')).toMatchObject({ oomKilled: true });
    await first.close();
    const second = await open(pool, { recycle: 'r' });
    expect(await run(second, ['true'])).toMatchObject({ oomKilled: false });
    const [container] = await containersOf(farm);
    const { State } = await askEngine<{ State: { Pid: number } }>(`/containers/${container}/json`);
    const dying = expect(run(second, ['sleep', '60'])).rejects.toMatchObject({ signature: 'died:137' });
    process.kill(State.Pid, 'SIGKILL');
    await dying;
    await second.close();
    await gone(farm);
  });

  test('leaves nothing when its process is killed, boxes made ahead included', async () => {
    const name = `${farm}-killed`;
    const file = fileURLToPath(new URL('./pool-owner.ts', import.meta.url));
    const code = "import('vite').then((vite) => vite.runnerImport(process.argv[1]))";
    const owner: ChildProcess = spawn(process.execPath, ['-e', code, file, name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void owner.kill('SIGKILL'));
    await once(owner.stdout!, 'data');
    expect((await containersOf(name)).length).toBeGreaterThan(1);
    owner.kill('SIGKILL');
    await until('no container runs', async () => (await running(name)) === 0, { withinMs: 90_000, everyMs: 200 });
    // one that was created and not yet started ends nothing by itself: the next sweep does
    const driver = createDockerDriver({ dockerHost: null });
    await driver.sweep(name, () => false);
    await gone(name);
  });

  test('a command’s pool removes what dead commands left, also what never started, and nobody else’s', async () => {
    const made = (worker: string) =>
      docker(
        ...[
          'create',
          '--network',
          'none',
          '--label',
          'rollout-farm.farm=command',
          '--label',
          `rollout-farm.worker=${worker}`,
        ],
        ...['--label', `rollout-farm.expires=${Date.now() + 600_000}`, LIMITS.image, 'true'],
      );
    const child = spawn('sleep', ['60']);
    const identity = processIdentity(child.pid);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const orphan = await made(`command-${identity}`);
    const elsewhere = await made('command-000000000000.1.1');
    const alive = await made(ownWorker('command'));
    onTestFinished(() => docker('rm', elsewhere, alive).then(() => {}));
    const driver = createDockerDriver({ dockerHost: null });
    const pool = createOwnPool(driver, 'command');
    const box = await pool.open(
      LIMITS,
      { farm: 'command', worker: ownWorker('command') },
      new AbortController().signal,
    );
    await until('the orphan is gone', async () => !(await containersOf('command')).includes(orphan));
    expect(await containersOf('command')).toEqual(expect.arrayContaining([elsewhere, alive]));
    await box.close();
    await pool.close();
  });

  describe('when the engine is in trouble', () => {
    let proxy: EngineProxy;
    let pool: SandboxDriver;
    const through = async (bounds: Partial<ShelfBounds> = {}) => {
      proxy = await EngineProxy.start();
      pool = poolOver(proxy.address, bounds);
      await pool.prepare(LIMITS.image);
      onTestFinished(async () => {
        proxy.fault = () => null;
        proxy.speak();
        await pool.close();
        await proxy.close();
        await gone(farm);
      });
    };
    const created = (method: string, path: string) => method === 'POST' && path === '/containers/create';
    const started = (method: string, path: string) => method === 'POST' && path.endsWith('/start');

    test('a start that fails is made again within the episode’s wait', async () => {
      await through();
      let failures = 2;
      proxy.fault = (method, path) =>
        started(method, path) && failures-- > 0 ? { status: 500, message: 'database is locked' } : null;
      const box = await open(pool);
      expect(await run(box, ['true'])).toMatchObject({ exitCode: 0 });
      expect(await running(farm)).toBe(1);
      await box.close();
    });

    test('a full disk is told as such after a few tries, and the next episode finds room again', async () => {
      await through();
      proxy.fault = (method, path) =>
        created(method, path) ? { status: 500, message: 'write /var/lib/docker: no space left on device' } : null;
      await expect(open(pool)).rejects.toMatchObject({ phase: 'start', signature: 'start:create', blame: 'engine' });
      await expect(open(pool)).rejects.toThrow(/no space left/);
      expect(await pool.answers()).toBe(true);
      proxy.fault = () => null;
      await (await open(pool)).close();
    });

    test('a start that hangs keeps nobody else, and its container is removed', async () => {
      await through({ ahead: 0 });
      let first = true;
      proxy.fault = (method, path) => {
        if (!started(method, path) || !first) return null;
        first = false;
        return 'hang';
      };
      const slow = open(pool);
      await until('it hangs', () => !first);
      const box = await Promise.race([open(pool), slow]);
      expect(await run(box, ['true'])).toMatchObject({ exitCode: 0 });
      await box.close();
      proxy.release();
      await (await slow).close();
    });

    test('an engine that stands still is told by the wait’s end; boxes end themselves; afterwards all is well', async () => {
      await through({ waitMs: 3_000 });
      const box = await open(pool);
      proxy.silence();
      const asked = performance.now();
      const lost = expect(run(box, ['sleep', '300'], { timeoutMs: 300_000 })).rejects.toMatchObject({
        blame: 'engine',
      });
      await expect(open(pool, { memoryMb: 300 })).rejects.toMatchObject({ phase: 'start', blame: 'engine' });
      // Before the engine's own silence would have been told (15 s).
      expect(performance.now() - asked).toBeLessThan(12_000);
      expect(await pool.answers()).toBe(false);
      await lost;
      await gone(farm);
      proxy.speak();
      expect(await pool.answers()).toBe(true);
      const next = await open(pool);
      expect(await run(next, ['true'])).toMatchObject({ exitCode: 0 });
      await Promise.all([box.close(), next.close()]);
    });

    test('an image for boxes that was deleted is made again; one that is gone for good is told', async () => {
      await through({ ahead: 0 });
      const name = `rollout-farm-test-deleted:${process.pid}`;
      const base = await docker('create', '--network', 'none', LIMITS.image, 'true');
      await docker('commit', '--change', `LABEL test=${process.pid}`, base, name);
      await docker('rm', base);
      await (await open(pool, { image: name })).close();
      const derived = async () => {
        const id = (await docker('inspect', '--format', '{{.Id}}', name)).slice(7, 19);
        return (await docker('images', '--format', '{{.Repository}}:{{.Tag}}', '--filter', 'label=rollout-farm.box'))
          .split('\n')
          .filter((tag) => tag.includes(id));
      };
      await docker('rmi', ...(await derived()));
      await (await open(pool, { image: name })).close();
      await docker('rmi', ...(await derived()), name);
      await expect(open(pool, { image: name })).rejects.toMatchObject({ phase: 'start', signature: 'start:image' });
    });
  });
});

async function running(name: string): Promise<number> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`rollout-farm.farm=${name}`], status: ['running'] }));
  return (await askEngine<unknown[]>(`/containers/json?filters=${filters}`)).length;
}
