// A code task in real boxes: which failure is whose, what its grades are worth, and that they come out the same again.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mapOf, type Value } from '../../../src/shared/json/value.ts';
import type { Box } from '../../../src/shared/sandbox.ts';
import { parseTrajectory } from '../../../src/shared/trajectory.ts';
import { makeEnvironment } from '../../../src/workers/rollout/environments/registry.ts';
import type { Episode } from '../../../src/workers/rollout/episode.ts';
import { replayTrajectory } from '../../../src/workers/rollout/replay.ts';
import { createDockerDriver } from '../../../src/workers/rollout/sandbox/docker.ts';
import { runnerHash } from '../../../src/workers/rollout/sandbox/image.ts';
import { LABELS, LIMITS } from '../sandbox-contract.ts';
import { build, playActions, testContext } from './test-context.ts';

const driver = createDockerDriver({ dockerHost: null });
/** An image with one file in it: no shell, no Python. */
const BARE = `rollout-farm/runner:${runnerHash()}`;
let box: Box;
let bare: Box;
let small: Box;
beforeAll(async () => {
  const open = async (image: string, tmpfsMb = LIMITS.tmpfsMb) => {
    await driver.prepare(image);
    return driver.open({ ...LIMITS, image, tmpfsMb }, LABELS, new AbortController().signal);
  };
  [box, bare, small] = [await open(LIMITS.image), await open(BARE), await open(LIMITS.image, 8)];
});
afterAll(() => driver.close());

const FILES = { 'solution.py': 'def double(n):\n    raise NotImplementedError\n' };
const HIDDEN = { 'check.py': 'import solution\nfor n in (0, 1, 7):\n    assert solution.double(n) == 2 * n\n' };
const RIGHT = mapOf({ 'solution.py': 'def double(n):\n    return 2 * n\n' });
const WRONG = mapOf({ 'solution.py': 'def double(n):\n    return 3\n' });

const environment = (check: object, place = box, files: object = FILES) =>
  build('code-task', { files, task: 't', check }, { box: async () => place });
const play = (check: object, actions: Value[], place = box): Promise<Episode> =>
  playActions(environment(check, place), actions);

describe('the reward of a code task', () => {
  it.each([
    ['apart', { command: ['python3', 'check.py'], files: HIDDEN }],
    ['in-process', { command: ['python3', 'check.py'], files: HIDDEN, kind: 'in-process' }],
    [
      'in-process',
      {
        command: ['python3', '-m', 'unittest', 'check'],
        files: {
          'check.py': `import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        import solution\n        self.assertEqual(solution.double(4), 8)\n`,
        },
      },
    ],
    ['exit', { command: ['python3', 'check.py'], files: HIDDEN, kind: 'exit' }],
    ['exit', { command: ['sh', '-c', 'python3 check.py'], files: HIDDEN }],
  ])(
    'is judged %s, with a fresh and with a prepared interpreter, and comes out the same again',
    async (level, check) => {
      for (const warm of level === 'exit' ? [{}] : [{}, { warm: 'python3' }]) {
        const one = environment({ ...check, ...warm });
        const episode = await playActions(one, [WRONG, RIGHT]);
        expect(episode).toMatchObject({ status: 'completed', steps: 2, totalReward: 0.9 });
        expect([one.grade, one.warm]).toEqual([level, 'warm' in warm ? 'python3' : null]);
        if (episode.status !== 'completed') return;
        const again = await replayTrajectory(parseTrajectory(episode.bytes), (name, config) =>
          makeEnvironment(name, config, testContext({ box: async () => box })),
        );
        expect(again).toMatchObject({ ok: true, mismatches: [] });
      }
    },
  );

  it.each([
    ['an interpreter that the image lacks, apart', { command: ['python3', 'check.py'], files: HIDDEN }],
    ['an interpreter that the image lacks, warm', { command: ['python3', 'check.py'], files: HIDDEN, warm: 'python3' }],
    ['an interpreter that the image lacks, in process', { command: ['python3', '-m', 'unittest'] }],
    ['an interpreter that the image lacks, by exit', { command: ['python3', '-c', 'pass'] }],
    ['a program that the image lacks', { command: ['make', 'check'] }],
    ['a program by its full path', { command: ['/usr/bin/make', 'check'] }],
    ['a hidden file that is no program', { command: ['./check.sh'], files: { 'check.sh': 'no program' } }],
  ])('is none for %s', async (_, check) => {
    const episode = await play(check, [RIGHT], bare);
    expect(episode).toMatchObject({ status: 'no_result', cause: 'environment_error' });
  });

  it('is none for a module that the image lacks, and low where the task was to bring it', async () => {
    expect(await play({ command: ['python3', '-m', 'no_such_module'] }, [RIGHT])).toMatchObject({
      status: 'no_result',
      cause: 'environment_error',
    });
    const own = { 'suite.py': 'import solution\nassert solution.double(2) == 4\n', ...FILES };
    const brought = environment({ command: ['python3', '-m', 'suite'] }, box, own);
    expect(await playActions(brought, [WRONG, RIGHT])).toMatchObject({ status: 'completed', totalReward: 0.9 });
  });

  it.each([
    ['./run-check', RIGHT],
    ['/work/run-check', RIGHT],
    ['./run-check', mapOf({ 'run-check': '#!/no/such/interpreter\n' })],
  ])('is low where a file of the agent’s was to be the program %s', async (program, action) => {
    expect(await play({ command: [program] }, [action])).toMatchObject({ status: 'completed', totalReward: -0.1 });
  });

  const large = (count: number, bytes: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`data/${i}`, 'x'.repeat(bytes)]));
  it.each([
    ['with more bytes than the box has', { ...FILES, ...large(9, 1 << 20) }, HIDDEN],
    ['whose check has more bytes than that', FILES, { ...HIDDEN, ...large(9, 1 << 20) }],
    ['with more files than the judge has room for', { ...FILES, ...large(4_200, 0) }, HIDDEN],
    ['whose check has more files than that', FILES, { ...HIDDEN, ...large(4_200, 0) }],
  ])('is none for a task %s, whatever is edited', async (_, files, hidden) => {
    for (const kind of ['apart', 'in-process', 'exit']) {
      const check = { command: ['python3', 'check.py'], files: hidden, kind };
      const many = Object.keys({ ...files, ...hidden }).length > 4_000;
      const episode = await playActions(environment(check, small, files), [RIGHT]);
      if (many && kind !== 'apart') expect(episode).toMatchObject({ status: 'completed', totalReward: 1 });
      else
        expect(episode).toMatchObject({
          status: 'no_result',
          cause: 'environment_error',
          detail: expect.stringContaining('do not fit into the box (data/'),
        });
    }
  });

  it.each([
    ['apart', 'many', large(4_200, 0)],
    ['apart', 'large', large(3, 1 << 20)],
    ['in-process', 'large', large(5, 1 << 20)],
    ['exit', 'large', large(5, 1 << 20)],
  ])('is low, judged %s, where the agent’s own files are too %s', async (kind, _, added) => {
    const check = { command: ['python3', 'check.py'], files: HIDDEN, kind };
    const one = environment(check, small, { ...FILES, old: 'x'.repeat(4 << 20) });
    const episode = await playActions(one, [mapOf(added)]);
    expect(episode.status === 'completed' && [episode.totalReward, episode.diagnostics]).toEqual([-0.1, ['disk']]);
  });

  it('says what befell a candidate that is judged apart', async () => {
    const of = (code: string, timeout = 5) =>
      play({ command: ['python3', 'check.py'], files: HIDDEN, timeout }, [mapOf({ 'solution.py': code })]);
    expect(await of('import ctypes\nctypes.string_at(0)')).toMatchObject({
      totalReward: -0.1,
      diagnostics: ['signal'],
    });
    expect(await of('while True: pass', 1)).toMatchObject({ totalReward: -0.1, diagnostics: ['timeout'] });
    const eater = await of('x = []\nwhile True: x.append(bytearray(10**7))');
    expect(eater).toMatchObject({ status: 'completed', totalReward: -0.1 });
    expect(eater.status === 'completed' && eater.diagnostics).toContain('memory');
  });
});
