// The farm as many machines would run it: docker-compose.yml with images built here, two rollout workers, one of them killed in
// the middle of a run; the run is accounted for to the last member, and nothing is left when it is taken down.
// COMPOSE="docker compose" in the environment tries the same with Compose v2.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildImages, ComposeFarm, docker } from '../support/compose.ts';
import { until } from '../support/until.ts';

const RUN = `compose-${randomBytes(4).toString('hex')}`;
const GROUPS = 24;
const SIZE = 4;
const BUILD_MS = 600_000;
const LONG = { withinMs: 120_000, everyMs: 250 };

interface Group {
  group: number;
  members: { member: number; status: string; reward?: number; cause?: string }[];
}

/** Half in boxes and long enough that a worker dies under some, half without. */
const SPEC = {
  name: 'compose',
  group_size: SIZE,
  tasks: Array.from({ length: GROUPS }, (_, i) => ({
    id: `t${i}`,
    env: i % 2 === 0 ? 'command' : 'guess',
    config:
      i % 2 === 0
        ? { files: {}, task: 'Say it.', expected_stdout: 'said', timeout: 20 }
        : { low: 5, high: 5, max_guesses: 1 },
  })),
  policy: {
    kind: 'completions',
    completions: Array.from({ length: GROUPS }, (_, i) => ({
      task_id: `t${i}`,
      action: i % 2 === 0 ? ['python3', '-c', 'import time; time.sleep(1); print("said")'] : 5,
    })),
    cycle: true,
  },
  max_steps: 1,
};

let farm: ComposeFarm;
/** On every box of it. */
let farmId = '';

beforeAll(async () => {
  farm = await ComposeFarm.of(await buildImages());
}, BUILD_MS);

afterAll(async () => {
  await farm.down();
  expect(farm.left()).toEqual([]);
  expect(farmId).toMatch(/^[0-9a-f]{16}$/);
  expect(docker('ps', '--all', '--quiet', '--filter', `label=rollout-farm.farm=${farmId}`)).toBe('');
});

describe('docker-compose.yml', () => {
  it('starts nothing without its secrets, and says which is missing and what writes it', async () => {
    for (const name of ['REDIS_PASSWORD', 'FARM_API_KEY', 'AWS_SECRET_ACCESS_KEY', 'DOCKER_GID']) {
      const told = await farm.compose(['up', '--detach'], [name]);
      expect(told.code, name).not.toBe(0);
      expect(told.stderr, name).toContain(name);
      expect(told.stderr, name).toContain('infra/images/build.sh');
    }
    expect(farm.left()).toEqual([]);
  });

  it('ends at once a role that is stopped while it starts', async () => {
    await farm.must('up', '--no-start');
    for (const service of ['engine-gate', 'gateway', 'rollout-worker', 'verify-worker', 'collector']) {
      const [id = ''] = farm.containers(service, 'created');
      docker('start', id);
      const began = performance.now();
      docker('stop', '--time', '120', id);
      expect(performance.now() - began, service).toBeLessThan(30_000);
      expect(docker('inspect', '--format', '{{.State.ExitCode}}', id), service).not.toBe('137');
    }
  });

  it('brings up a farm that is scaled, loses a worker in the middle of a run, and accounts for every member', async () => {
    await farm.must('up', '--detach', '--scale', 'rollout-worker=2');
    await until(
      'two rollout workers are there',
      async () => (await farm.metric('farm_workers{role="rollout"}')) === 2,
      LONG,
    );
    await until(
      'they have said that they share an engine',
      async () => (await farm.metric('farm_engines')) === 1,
      LONG,
    );

    const asked = ['exec', '-T', 'redis', 'sh', '-c', 'REDISCLI_AUTH="$REDIS_PASSWORD" redis-cli get farm:id'];
    farmId = (await farm.must(...asked)).trim();

    const submitted = await farm.request('/v1/runs', {
      method: 'POST',
      body: JSON.stringify({ run_id: RUN, spec: SPEC }),
    });
    expect(submitted.status, await submitted.text()).toBe(201);

    const groups: Group[] = [];
    let killed: string | null = null;
    const results = await farm.request(`/v1/runs/${RUN}/results?follow=1`);
    for await (const line of linesOf(results)) {
      if (line.trim() === '') continue;
      const group = JSON.parse(line) as Group;
      if (!('members' in group)) continue;
      groups.push(group);
      // Light groups are over before a box is open.
      if (killed !== null || group.group % 2 === 1) continue;
      await until('a worker is wanted', async () => (await farm.metric('farm_wanted_workers')) === 1);
      // Boxes of the run as the engine has them: hardened, and without a way to it.
      const seen = await until('boxes are open', () => {
        const open = boxes('status=running').flatMap(hardening);
        return open.length > 0 && open;
      });
      expect([...new Set(seen)]).toEqual(['network none, mounts 0, read-only true, privileged false']);
      killed = farm.containers('rollout-worker')[0] as string;
      docker('kill', killed);
    }

    expect(killed).not.toBeNull();
    expect(groups.map((one) => one.group).sort((a, b) => a - b)).toEqual(Array.from({ length: GROUPS }, (_, i) => i));
    const members = groups.flatMap((one) => one.members);
    expect(members).toHaveLength(GROUPS * SIZE);
    expect(members.filter((one) => one.status !== 'completed' || one.reward !== 1)).toEqual([]);
    await until('the run is done', async () => (await status()).state === 'done', LONG);
    expect(await status()).toMatchObject({ members: { planned: 96, accepted: 96, completed: 96, no_result: 0 } });

    const sound = await farm.farm('collector', 'verify-run', RUN);
    expect(sound, sound.stderr).toMatchObject({ code: 0 });
    expect(sound.stdout).toContain(`sound: ${GROUPS} groups, ${GROUPS * SIZE} members`);
    // What the killed worker had made and not started cannot end itself: the other worker removes it on its rounds.
    await until('no box is left that was never started', () => boxes('status=created').length === 0, LONG);
  }, 600_000);

  it('is scraped by a Prometheus that finds the gateway and has its key', async () => {
    await farm.must('--profile', 'metrics', 'up', '--detach', '--no-deps', 'prometheus');
    await until(
      'it has what the autoscaler asks for',
      async () => (await scraped('farm_wanted_workers')) !== null,
      LONG,
    );
    const workers = 'farm_workers{role="rollout"}';
    await until(
      'it has as many workers as the gateway says',
      async () => (await scraped(workers)) === (await farm.metric(workers)),
      LONG,
    );
    expect(await scraped('up{job="farm"}')).toBe(1);
  });

  it('keeps the engine’s socket to the gate, every role under a user without rights, and Redis and store to themselves', () => {
    const sockets = (id: string): boolean =>
      docker('inspect', '--format', '{{json .Mounts}}', id).includes('docker.sock');
    for (const service of ['rollout-worker', 'verify-worker', 'collector', 'gateway', 'redis', 'store'])
      for (const id of farm.containers(service)) {
        expect(sockets(id), service).toBe(false);
        expect(
          docker('inspect', '--format', '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}', id),
          service,
        ).toMatch(/^(990:990|999:999) true \[ALL\]$/);
      }
    expect(farm.containers('engine-gate').map(sockets)).toEqual([true]);
    for (const service of ['redis', 'store'])
      for (const id of farm.containers(service))
        expect(
          Object.keys(JSON.parse(docker('inspect', '--format', '{{json .NetworkSettings.Networks}}', id)) as object),
        ).toEqual([`${farm.project}_data`]);
  });

  it('drains a worker that is stopped', async () => {
    const workers = farm.containers('rollout-worker');
    const [worker = ''] = workers;
    const began = performance.now();
    docker('stop', '--time', '120', worker);
    // One that waits for work that is not there has half a minute.
    expect(performance.now() - began).toBeLessThan(25_000);
    expect(docker('inspect', '--format', '{{.State.ExitCode}}', worker)).toBe('143');
    await until(
      'it is not counted any more',
      async () => ((await farm.metric('farm_workers{role="rollout"}')) ?? 0) === workers.length - 1,
      LONG,
    );
  });
});

async function status(): Promise<{ state: string }> {
  return (await (await farm.request(`/v1/runs/${RUN}`)).json()) as { state: string };
}

/** A figure as Prometheus has it; null while it has none. */
async function scraped(query: string): Promise<number | null> {
  const asked = `${farm.prometheus}/api/v1/query?query=${encodeURIComponent(query)}`;
  const answer = await fetch(asked, { signal: AbortSignal.timeout(10_000) }).catch(() => null);
  if (answer?.ok !== true) return null;
  const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
  const [first] = data.result;
  return first === undefined ? null : Number(first.value[1]);
}

function boxes(status: string): string[] {
  const args = ['ps', '--all', '--quiet', '--filter', status, '--filter', `label=rollout-farm.farm=${farmId}`];
  return docker(...args)
    .split('\n')
    .filter(Boolean);
}

/** Nothing of a box that has closed meanwhile. */
function hardening(box: string): string[] {
  try {
    const format = '{{json .HostConfig}}\n{{json .Mounts}}';
    const [host = '', mounts = ''] = docker('inspect', '--format', format, box).split('\n');
    const { NetworkMode, ReadonlyRootfs, Privileged } = JSON.parse(host) as Record<string, unknown>;
    const count = (JSON.parse(mounts) as unknown[]).length;
    return [`network ${NetworkMode}, mounts ${count}, read-only ${ReadonlyRootfs}, privileged ${Privileged}`];
  } catch (error) {
    if (String(error).includes('No such object')) return [];
    throw error;
  }
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
  if (rest !== '') yield rest;
}
