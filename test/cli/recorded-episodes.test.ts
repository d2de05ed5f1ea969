import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openRecording } from '../../src/cli/recorded-episodes.ts';
import { openFolderStore } from '../../src/shared/store/folder.ts';
import type { Store } from '../../src/shared/store/store.ts';
import { finishRun } from '../../src/workers/collect/finish.ts';
import { collectAll, FakeLedger, finishedRun, makeRun } from '../support/run-fixture.ts';

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'farm-recorded-'));
  store = await openFolderStore(dir);
});
afterEach(() => rm(dir, { recursive: true }));

async function namesIn(run: string): Promise<string[]> {
  const { episodes, close } = await openRecording(path.join(dir, 'runs', run));
  const names: string[] = [];
  for await (const { name } of episodes) names.push(name);
  await close();
  return names;
}

it('episodes of a task with one group are named by task and member', async () => {
  await finishedRun(store, 'plain', { groups: 2, size: 2 });
  expect(await namesIn('plain')).toEqual(['task/1/0', 'task/1/1', 'task/0/0', 'task/0/1']);
});

it('episodes of a task with several groups say which group they are of', async () => {
  const { entries, identity, finished } = await makeRun(store, 'refilled', { groups: 3, size: 2, refilled: true });
  // As it is at work: the group that refills another closes after it.
  const told = entries
    .toReversed()
    .map((entry, i) => ({ ...entry, seq: i + 1, closed: { ...entry.closed, seq: i + 1 } }));
  await collectAll(store, { entries: told, identity, finished }, new FakeLedger(told));
  await finishRun(store, finished);
  expect(await namesIn('refilled')).toEqual([
    'task/0/0 (group 0)',
    'task/0/1 (group 0)',
    'task/1/0',
    'task/1/1',
    'task/2/0 (group 2)',
    'task/2/1 (group 2)',
  ]);
});
