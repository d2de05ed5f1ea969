// A run whose store is in S3, while the server is away, denies, or is full: the run waits, says why, costs nobody an
// attempt, and goes on by itself. Afterwards every member is accounted for.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { Disk } from '../../src/bench/chaos/disk.ts';
import { verifyRun } from '../../src/shared/store/verify-run.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { type DrivenRun, FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { S3Proxy } from '../support/s3-proxy.ts';
import { startVersitygw, useKeys, type Versitygw } from '../support/s3-server.ts';
import { until } from '../support/until.ts';

/** Large enough to be objects of their own, another for each group. */
function output(group: number): string {
  const words = Array.from({ length: 1_000 }, (_, i) => ((i * 2_654_435_761) % 4_294_967_296).toString(36));
  return `${group} ${words.join('')}`;
}
const SPEC = {
  group_size: 2,
  tasks: Array.from({ length: 12 }, (_, i) => ({
    id: `t${i}`,
    env: 'command',
    config: { files: { big: output(i) }, task: 'Show it.', expected_stdout: output(i), timeout: 20 },
  })),
  policy: { kind: 'scripted', actions: [['sh', '-c', 'sleep 0.2; cat big']] },
};

interface Scene {
  server: Versitygw;
  proxy: S3Proxy;
  disk: Disk;
  farm: FarmParts;
  run: DrivenRun;
  sandbox: GatedSandbox;
}

async function scene({ onTestFinished }: TestContext): Promise<Scene> {
  const closing: (() => unknown)[] = [];
  onTestFinished(async () => {
    for (const close of closing.reverse()) await close();
    useKeys();
  });
  const room = mkdtempSync(path.join(tmpdir(), 'farm-test-away-'));
  closing.push(() => rmSync(room, { recursive: true, force: true }));
  const disk = await Disk.make(room);
  closing.push(() => disk.close());
  const folder = path.join(disk.folder, 'objects');
  mkdirSync(folder);
  const server = await startVersitygw(folder);
  closing.push(() => server.close());
  const proxy = await S3Proxy.start(server.port);
  closing.push(() => proxy.close());
  useKeys({ ...server.env, S3_ENDPOINT: proxy.endpoint });
  const farm = await FarmParts.start({ FARM_STORE: `s3://${server.bucket}/away` });
  closing.push(() => farm.close());
  const run = await farm.drive(SPEC);
  const sandbox = new GatedSandbox();
  // More are played when the fault has begun.
  sandbox.admit(4);
  const seat = farm.seat('rollout', run.run, 2);
  const rollout = await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker]));
  farm.onClose(() => rollout.stop());
  const collect = await startCollectWorker(farm.seat('collect', run.run), run.run);
  farm.onClose(() => collect.stop());
  return { server, proxy, disk, farm, run, sandbox };
}

/** Pauses while the fault lasts, says `why`, and ends sound once it is over. */
async function rides(
  { farm, run, sandbox }: Scene,
  why: RegExp,
  begin: () => unknown,
  mend: () => unknown,
): Promise<void> {
  await until('the run is at work', async () => (await run.status()).members.accepted >= 4);
  await begin();
  sandbox.release();
  const paused = await until(
    'the run is paused, and says why',
    async () => {
      const now = await run.status();
      return now.state === 'paused' && why.test(now.reason ?? '') && now;
    },
    { withinMs: 60_000 },
  );
  expect(paused.members.no_result).toBe(0);
  expect(paused.members.accepted).toBeLessThan(24);
  await mend();
  expect(await run.end).toEqual({ state: 'done' });
  const status = await run.status();
  expect(status.members).toMatchObject({ accepted: 24, completed: 24, no_result: 0 });
  const check = await verifyRun(farm.store, run.run);
  expect(check).toMatchObject({ ok: true, faults: [], members: 24 });
}

/** How the way to the server begins to misbehave, and stops. */
function misdeed({ proxy }: Scene, what: S3Proxy['misdeed']): [() => void, () => void] {
  const set = (to: S3Proxy['misdeed']) => () => {
    proxy.misdeed = to;
  };
  return [set(what), set(() => null)];
}

describe('a run whose store is in S3', () => {
  it('waits for a server that is killed, and goes on when it is back', async (context) => {
    const at = await scene(context);
    await rides(
      at,
      /does not answer/,
      () => at.server.kill(),
      () => at.server.restart(),
    );
  });

  it('waits for rights that are taken, and goes on when they are given back', async (context) => {
    const at = await scene(context);
    const denied = (method: string): boolean => method === 'PUT';
    await rides(
      at,
      /denies the right.*AccessDenied/,
      ...misdeed(at, ({ method }) => (denied(method) ? { kind: 'answer', status: 403, code: 'AccessDenied' } : null)),
    );
  });

  it('waits for credentials that have expired', async (context) => {
    const at = await scene(context);
    await rides(
      at,
      /credentials have expired/,
      ...misdeed(at, () => ({ kind: 'answer', status: 400, code: 'ExpiredToken' })),
    );
  });

  it('waits for a store that throttles without end', async (context) => {
    const at = await scene(context);
    await rides(at, /fewer requests/, ...misdeed(at, () => ({ kind: 'answer', status: 503, code: 'SlowDown' })));
  });

  it('acknowledges nothing that a lying store has not kept', async (context) => {
    const at = await scene(context);
    await rides(
      at,
      /says that it has stored what it has not/,
      ...misdeed(at, ({ method }) => (method === 'PUT' ? { kind: 'lie' } : null)),
    );
  });

  it('waits for a disk under the server that is full', async (context) => {
    const at = await scene(context);
    expect(at.disk.kind).not.toBe('none');
    await rides(
      at,
      /is full/,
      () => at.disk.fill(),
      () => at.disk.empty(),
    );
  });
});
