// Nothing of an episode outlives a reset: files, processes, sockets, memory, keys, locks, clocks. Looked at from outside after
// each one. RESETS=1000 for the long proof.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Box, type BoxLost, DEFAULT_LIMITS } from '../../../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../../../src/workers/rollout/sandbox/docker.ts';
import { containersOf, type Outside, OutsideView } from '../../../support/outside.ts';
import { LABELS } from '../../sandbox-contract.ts';
import { checkOf, DOUBLE, graded } from '../../sandbox-grade-contract.ts';

const SOURCE = readFileSync(fileURLToPath(new URL('./plants.py', import.meta.url)), 'utf8');
/** All kinds: the functions of plants.py that take nothing. */
const KINDS = [...SOURCE.matchAll(/^def (\w+)\(\):/gm)].map((match) => match[1] as string);
/** What a box refuses from the start, so that nothing is planted. */
const REFUSED = ['crontab', 'posix_mq', 'keyrings'];
/** Kinds of which something is there still when their command is over and all its processes are dead. */
const LASTING = [
  'locked_folders odd_names deep_tree wide_tree many_entries immutable_looking hard_links symbolic_links',
  'pipes_and_sockets sparse_file hooks environment attributes folder_mode unix_sockets shm_sysv sem_sysv msg_sysv posix_shm file_locks',
]
  .join(' ')
  .split(' ');
/** Gone when the kernel next looks for what nobody holds: before we look, or not. */
const FLEETING = ['sockets_in_flight'];
const RESETS = Number(process.env.RESETS ?? 60);

/** A small generator of its own, so that a failure can be had again. */
function* numbers(seed: number): Generator<number, never> {
  let state = seed;
  for (;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

describe.each([
  ['a reset', false],
  ['a reset of a box whose interpreter is kept', true],
])('%s', (_, kept) => {
  const driver = createDockerDriver({ dockerHost: null });
  const farm = `${LABELS.farm}-reset${kept ? '-kept' : ''}`;
  const outside = new OutsideView();
  let box: Box;
  let container: string;
  let clean: Outside;

  beforeAll(async () => {
    await driver.prepare(DEFAULT_LIMITS.image);
    await renew();
  });
  afterAll(async () => {
    await driver.close();
    await outside.close();
  });

  /** Another box, known to be clean. */
  async function renew(): Promise<void> {
    await (box as Box | undefined)?.close();
    box = await driver.open(DEFAULT_LIMITS, { ...LABELS, farm }, new AbortController().signal);
    container = (await containersOf(farm))[0] as string;
    if (kept) expect(graded(await box.grade(checkOf(DOUBLE), true)).passed).toBe(true);
    await box.reset();
    clean = await outside.look(container);
    // the interpreter that serves grades, and the two ends of the socket by which it is told of them
    const own = ['process', '2 tasks', 'unix', 'unix', 'by the engine', 'by the engine'];
    expect(clean.left.map((one) => one.match(/^(process|unix|2 tasks|by the engine)/)?.[0] ?? one)).toEqual(
      kept ? own : [],
    );
  }

  /** False: the box has to be given up. That is right only for what nobody without a capability can undo. */
  async function reset(what: unknown): Promise<boolean> {
    const fault = await box.reset().then(
      () => null,
      (error: BoxLost) => error.signature,
    );
    if (fault !== null) expect({ what, fault }).toEqual({ what, fault: 'reset:priorities' });
    return fault === null;
  }

  async function plant(kinds: readonly string[], timeoutMs = 60_000): Promise<Record<string, boolean | string>> {
    const result = await box.run({ argv: ['python3', '-c', SOURCE, ...kinds], timeoutMs, outputBytes: 100_000 });
    expect({ kinds, cause: result.cause, stderr: result.stderr.toString() }).toEqual({
      kinds,
      cause: 'exit',
      stderr: '',
    });
    return JSON.parse(result.stdout.toString()) as Record<string, boolean | string>;
  }

  async function plantSome(kinds: readonly string[], timeoutMs: number): Promise<void> {
    const result = await box.run({ argv: ['python3', '-c', SOURCE, ...kinds], timeoutMs, outputBytes: 100_000 });
    expect({ kinds, cause: result.cause }).toEqual({ kinds, cause: expect.stringMatching(/^(exit|timeout)$/) });
  }

  async function expectClean(what: unknown): Promise<Outside> {
    const seen = await outside.look(container);
    expect({ what, left: seen.left }).toEqual({ what, left: clean.left });
    expect({ what, same: seen.same }).toEqual({ what, same: clean.same });
    return seen;
  }

  test.each(KINDS)('leaves nothing of %s', async (kind) => {
    expect(await plant([kind])).toEqual({ [kind]: !REFUSED.includes(kind) });
    const before = await outside.look(container);
    // the check can fail: what was planted is seen from here
    const seen = before.left.length > clean.left.length || JSON.stringify(before.same) !== JSON.stringify(clean.same);
    if (!FLEETING.includes(kind)) expect({ kind, seen }).toEqual({ kind, seen: LASTING.includes(kind) });
    await box.reset();
    await expectClean(kind);
  });

  test('never passes over what was done to the runner while it killed', async () => {
    for (let turn = 0; turn < 30; turn += 1) {
      await plant(['at_the_runner', 'at_the_runner']);
      if (await reset(turn)) await expectClean(turn);
      else await renew();
    }
  });

  test(
    `leaves nothing of anything, ${RESETS} times`,
    async () => {
      const random = numbers(7);
      const memory: number[] = [];
      const rss: number[] = [];
      for (let round = 0; round < RESETS; round += 1) {
        const kinds = KINDS.filter(() => random.next().value < 0.05 + 0.2 * random.next().value);
        // two of them leave no room for the others
        const ordered = kinds.sort((a, b) => Number(LARGE.includes(a)) - Number(LARGE.includes(b)));
        // cut off at times, in the midst of it
        await plantSome(ordered, random.next().value < 0.1 ? 200 : 60_000);
        if (!(await reset({ round, kinds }))) {
          await renew();
          continue;
        }
        const seen = await expectClean({ round, kinds });
        memory.push(seen.memory);
        rss.push(seen.rss);
        if (RESETS > 100 && (round + 1) % 100 === 0) process.stderr.write(`${round + 1} resets, nothing left\n`);
      }
      const late = (values: number[]) => Math.max(...values.slice(-10));
      expect(late(rss) - (rss[0] as number)).toBeLessThan(2 * 2 ** 20);
      expect(late(memory)).toBeLessThan(64 * 2 ** 20);
    },
    120_000 + RESETS * 3_000,
  );
});

const LARGE = ['many_entries', 'sparse_file', 'full_of_processes', 'forking', 'folder_mode'];
