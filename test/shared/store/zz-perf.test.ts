import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { it } from 'vitest';
import { openFolderStore } from '../../../src/shared/store/folder.ts';
import { ClaimedContents } from '../../../src/shared/store/verify-content.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { finishedRun, makeRun, collectAll, FakeLedger } from '../../support/run-fixture.ts';
import { finishRun } from '../../../src/workers/collect/finish.ts';

it('perf', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'farm-vperf-'));
  const store = await openFolderStore(dir);
  const fixture = await makeRun(store, 'p', { groups: 2500, size: 8, large: false });
  await collectAll(store, fixture, new FakeLedger(fixture.entries), 500);
  await finishRun(store, fixture.finished);
  const real = ClaimedContents.prototype.inspect;
  for (let i = 0; i < 2; i++) {
    ClaimedContents.prototype.inspect = () => {};
    const a = await verifyRun(store, 'p');
    ClaimedContents.prototype.inspect = real;
    const b = await verifyRun(store, 'p');
    console.log(a.ok, a.members, 'without', a.seconds, Math.round(a.members / a.seconds), 'with', b.ok, b.seconds, Math.round(b.members / b.seconds));
  }
  await rm(dir, { recursive: true });
}, 300000);
