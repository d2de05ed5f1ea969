import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { Episodes } from '../../src/gateway/episodes.ts';
import { OwnBoxes } from '../../src/gateway/own-boxes.ts';
import { parseJson } from '../../src/shared/json/json.ts';
import type { ValueMap } from '../../src/shared/json/value.ts';
import { ENVIRONMENT_CONFIGS } from '../../src/shared/spec/environment-config.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';

const never = new AbortController().signal;
const config = parseJson('{"files": {"a.txt": "x"}, "task": "t", "expected_stdout": "x", "timeout": 3}') as ValueMap;
const command = { name: 'command', config: ENVIRONMENT_CONFIGS.get('command')?.resolve(config) as ValueMap, seed: 1n };
const act = (...argv: string[]): string => JSON.stringify(argv);

function ownBoxes(slots: number, worker: string): Episodes {
  const openDriver = () => createDockerDriver({ dockerHost: null });
  return new Episodes({ lane: null, own: new OwnBoxes({ openDriver, slots, worker }) });
}

function boxesOf(worker: string): string[] {
  const args = ['ps', '-aq', '--filter', `label=rollout-farm.worker=${worker}`];
  return execFileSync('docker', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
}

describe('completions in real boxes', () => {
  test('honest and hostile ones side by side earn their own, two at a time, and no box is left', async () => {
    const worker = `gateway-test-${process.pid}`;
    const episodes = ownBoxes(2, worker);
    const completions = [
      act('cat', 'a.txt'),
      act('sh', '-c', ':(){ :|:& };:'),
      act('sleep', '60'),
      act('cat', 'a.txt'),
      'rm -rf /',
    ];
    const outcomes = await episodes.score(command, completions, { until: performance.now() + 120_000, signal: never });
    await episodes.close();
    expect(outcomes.map((one) => (one.status === 'completed' ? one.reward : one.cause))).toEqual([
      1, -0.1, -0.1, 1, -0.1,
    ]);
    expect(boxesOf(worker)).toEqual([]);
  });

  test('at the deadline what is over is there, the rest is named, and its boxes go too', async () => {
    const worker = `gateway-late-${process.pid}`;
    const episodes = ownBoxes(1, worker);
    const warm = await episodes.score(command, [act('cat', 'a.txt')], {
      until: performance.now() + 60_000,
      signal: never,
    });
    expect(warm[0]).toMatchObject({ status: 'completed', reward: 1 });
    const began = performance.now();
    // Its own end is far beyond the deadline.
    const patient = { ...command, config: new Map(command.config).set('timeout', 90n) };
    const outcomes = await episodes.score(patient, [act('sleep', '60'), act('cat', 'a.txt')], {
      until: began + 4_000,
      signal: never,
    });
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(outcomes).toMatchObject([{ cause: 'environment_silent' }, { cause: 'not_started' }]);
    await episodes.close();
    expect(boxesOf(worker)).toEqual([]);
  });
});
