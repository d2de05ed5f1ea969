// A signal while a command still waits for what it needs: whole commands, and a Redis, an engine, a store, a platform that
// takes connections and never answers. The command ends at once, says so by its exit, and leaves nothing.

import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Command, TestFarm } from '../support/farm.ts';
import { quickSpec, slowSpec } from '../support/run-specs.ts';
import { type SilentServer, startSilent } from '../support/silent-server.ts';
import { TIMED } from '../support/timed.ts';
import { until } from '../support/until.ts';

const EXITS = { SIGINT: 130, SIGTERM: 143 } as const;
type Signal = keyof typeof EXITS;
/** Before any of them is ended by force, and far from what it would wait by itself. */
const ENDS_WITHIN_MS = 3_500;

let silent: SilentServer;
beforeAll(async () => {
  silent = await startSilent();
});
afterAll(() => silent.close());

let farm: TestFarm;
beforeEach(() => {
  farm = new TestFarm();
});
afterEach(() => farm.close());

/** As a shell would say it. */
async function exitOf({ process, ended }: Command): Promise<number | null> {
  const { code } = await ended;
  return code ?? (process.signalCode === null ? null : EXITS[process.signalCode as Signal]);
}

/** To the command alone, as a supervisor of services sends it, when it has asked whoever is silent. */
async function stopped(signal: Signal, args: string[]): Promise<number | null> {
  const before = silent.asked;
  const command = farm.start(...args);
  await until('it waits', () => silent.asked > before || command.process.exitCode !== null, { withinMs: 90_000 });
  const sent = performance.now();
  command.process.kill(signal);
  const exit = await exitOf(command);
  expect(performance.now() - sent, command.stderr).toBeLessThan(ENDS_WITHIN_MS);
  // SIGTERM may be told as any interruption is.
  return signal === 'SIGTERM' && exit === EXITS.SIGINT ? EXITS.SIGTERM : exit;
}

const commandTask = '{"files":{},"task":"Say hi.","expected_stdout":"hi"}';
const DECISION = JSON.stringify({ classification: 'permit', facts: { age: 34 } });
const items = (): string =>
  farm.file('items.jsonl', `${JSON.stringify({ prompt: 'p', completion: `<decision>${DECISION}</decision>` })}\n`);
const out = (): string => path.join(farm.data, 'out');

type Row = [args: () => string[], signals?: readonly Signal[]];
const BOTH = ['SIGTERM', 'SIGINT'] as const;

const ON_REDIS: Record<string, Row> = {
  run: [() => ['run', quickSpec(farm)], BOTH],
  'run --detach': [() => ['run', quickSpec(farm), '--detach']],
  up: [() => ['up', '--port', '0'], BOTH],
  serve: [() => ['serve', '--port', '0'], BOTH],
  'worker rollout': [() => ['worker', 'rollout'], BOTH],
  'worker verify': [() => ['worker', 'verify', '--health', '127.0.0.1:0']],
  'worker collect': [() => ['worker', 'collect'], BOTH],
  doctor: [() => ['doctor']],
  runs: [() => ['runs']],
  status: [() => ['status', 'r']],
  top: [() => ['top'], BOTH],
  results: [() => ['results', 'r', '--follow']],
  cancel: [() => ['cancel', 'r']],
  rm: [() => ['rm', 'r']],
  'verify-run': [() => ['verify-run', 'r']],
  replay: [() => ['replay', 'r']],
  export: [() => ['export', 'r', '--format', 'records', '--out', out()], BOTH],
  'store gc': [() => ['store', 'gc']],
  'score --env': [() => ['score', '--env', 'guess', '--env-config', '{"low":1,"high":8}', '--input', items()]],
};

const ON_ENGINE: Record<string, Row> = {
  demo: [() => ['demo'], BOTH],
  test: [() => ['test', 'no-such-test']],
  run: [() => ['run', slowSpec(farm)], BOTH],
  'worker rollout': [() => ['worker', 'rollout']],
  doctor: [() => ['doctor']],
  rollout: [
    () => ['rollout', '--env', 'command', '--config', commandTask, '--actions', '[["echo","hi"]]', '--out', out()],
    BOTH,
  ],
  'score --env': [() => ['score', '--env', 'command', '--env-config', commandTask, '--input', items()]],
  'engine-gate': [
    () => {
      farm.file('images.json', [{ file: 'none.tar', name: 'none', id: 'none' }]);
      return ['engine-gate', '--listen', `unix://${farm.data}/gate.sock`, '--images', farm.data];
    },
    BOTH,
  ],
  'bench sandbox': [() => ['bench', 'sandbox'], BOTH],
};

const STORED = 's3://bucket/prefix/runs/r';
const ON_STORE: Record<string, Row> = {
  run: [() => ['run', quickSpec(farm, { store: 's3://bucket/prefix' })], BOTH],
  'verify-run': [() => ['verify-run', STORED]],
  replay: [() => ['replay', STORED]],
  export: [() => ['export', STORED, '--format', 'parquet', '--out', out()]],
  'store gc': [() => ['store', 'gc', '--store', 's3://bucket/prefix']],
};

const ON_PLATFORM: Record<string, Row> = {
  score: [() => ['score', farm.file('domain.yaml', 'domain:\n  platform_id: 1\n'), '--input', items()], BOTH],
};

const rows = (of: Record<string, Row>) =>
  Object.entries(of).flatMap(([name, [args, signals = ['SIGTERM'] as const]]) =>
    signals.map((signal) => ({ name, signal, args })),
  );

describe.each([
  ['Redis', ON_REDIS, () => ({ REDIS_URL: `redis://127.0.0.1:${silent.port}` })],
  ['engine', ON_ENGINE, () => ({ DOCKER_HOST: `tcp://127.0.0.1:${silent.port}` })],
  [
    'store',
    ON_STORE,
    () => ({
      S3_ENDPOINT: `http://127.0.0.1:${silent.port}`,
      AWS_REGION: 'here',
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'secret',
    }),
  ],
  [
    'platform',
    ON_PLATFORM,
    () => ({ AMBERTRACE_BASE_URL: `http://127.0.0.1:${silent.port}`, AMBERTRACE_API_KEY: 'at_x' }),
  ],
] as const)('a signal to a command whose %s never answers', (_, of, env) => {
  it.each(rows(of))('ends it: $name, $signal', TIMED, async ({ signal, args }) => {
    Object.assign(farm.env, env());
    expect(await stopped(signal, args())).toBe(EXITS[signal]);
    await farm.gone();
    expect(existsSync(out())).toBe(false);
  });
});
