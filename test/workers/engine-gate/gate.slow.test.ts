// The gate before a real engine: our driver works through it as without it, and nobody gets more than boxes.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, type Labels, type SandboxDriver } from '../../../src/shared/sandbox.ts';
import { EngineGate } from '../../../src/workers/rollout/engine-gate/gate.ts';
import { createDockerDriver } from '../../../src/workers/rollout/sandbox/docker.ts';
import { containersOf } from '../../support/outside.ts';

const farm = `gate-${randomBytes(6).toString('hex')}`;
const labels: Labels = { farm, worker: 'gate-test' };
const never = new AbortController().signal;
const folder = mkdtempSync(path.join(tmpdir(), 'farm-test-gate-'));
const socketPath = path.join(folder, 'engine.sock');
let gate: EngineGate;
let driver: SandboxDriver;

const docker = (...args: string[]): string => execFileSync('docker', args, { encoding: 'utf8' }).trim();

function ask(method: string, target: string, body?: unknown): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const asked = http.request({ socketPath, method, path: target, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    asked.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** What the engine answers to a stream: its first line. */
function askStream(target: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { connection: 'Upgrade', upgrade: 'tcp' };
    const asked = http.request({ socketPath, method: 'POST', path: target, headers });
    asked.on('response', (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    asked.on('upgrade', (_, socket) => {
      socket.destroy();
      resolve(101);
    });
    asked.on('error', reject).end();
  });
}

beforeAll(async () => {
  gate = new EngineGate({ dockerHost: null, log: pino({ level: 'silent' }) });
  await gate.listen({ path: socketPath });
  driver = createDockerDriver({ dockerHost: `unix://${socketPath}` });
});

afterAll(async () => {
  await driver.close();
  await gate.close();
  rmSync(folder, { recursive: true });
  expect(await containersOf(farm)).toEqual([]);
});

describe('the engine through the gate', () => {
  it('gives boxes that run commands, keep their bounds, and are gone when they are closed', async () => {
    const { imageId } = await driver.prepare(DEFAULT_LIMITS.image);
    expect(imageId).toMatch(/^sha256:/);
    const box = await driver.open(DEFAULT_LIMITS, labels, never);
    const run = (argv: string[], stdin?: Buffer) =>
      box.run({ argv, timeoutMs: 60_000, outputBytes: 4 * 1024 * 1024, ...(stdin ? { stdin } : {}) });
    const megabytes = randomBytes(2 * 1024 * 1024);
    const echoed = await run(['cat'], megabytes);
    expect(echoed.stdout.equals(megabytes)).toBe(true);
    expect(await run(['false'])).toMatchObject({ cause: 'exit', exitCode: 1 });
    expect(await containersOf(farm)).toHaveLength(1);
    await box.close();
    expect(await containersOf(farm)).toEqual([]);
  });

  it('opens many at once', async () => {
    const boxes = await Promise.all(Array.from({ length: 6 }, () => driver.open(DEFAULT_LIMITS, labels, never)));
    const said = await Promise.all(
      boxes.map((box, i) => box.run({ argv: ['echo', String(i)], timeoutMs: 60_000, outputBytes: 100 })),
    );
    expect(said.map((one) => one.stdout.toString())).toEqual(['0\n', '1\n', '2\n', '3\n', '4\n', '5\n']);
    await Promise.all(boxes.map((box) => box.close()));
  });

  it('grafts the runner onto an image that the engine has not seen yet', async () => {
    const image = `rollout-farm-test-gate-${process.pid}`;
    execFileSync('docker', ['build', '--quiet', '--tag', image, '-'], {
      input: `FROM ${DEFAULT_LIMITS.image}\nLABEL made=${farm}\n`,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    try {
      const { imageId } = await driver.prepare(image);
      const box = await driver.open({ ...DEFAULT_LIMITS, image }, labels, never);
      expect(box.imageId).toBe(imageId);
      await box.close();
      docker('rmi', `rollout-farm/box:${imageId.slice(7, 19)}-${runnerOf()}`);
    } finally {
      docker('rmi', image);
    }
  });

  it('sweeps boxes without an owner, also those that were made past it', async () => {
    const past = docker(
      'create',
      '--label',
      `rollout-farm.farm=${farm}`,
      '--label',
      'rollout-farm.worker=gone',
      DEFAULT_LIMITS.image,
    );
    expect(await driver.sweep(farm, () => false)).toBe(1);
    expect(docker('ps', '-aq', '--filter', `id=${past}`)).toBe('');
  });

  it('refuses a privileged container, and whatever else is no box', async () => {
    const body = { Image: DEFAULT_LIMITS.image, HostConfig: { Privileged: true, Binds: ['/:/host'] } };
    for (const target of ['/containers/create', '/containers/create?name=rollout-farm-0123456789abcdef']) {
      const answer = await ask('POST', target, body);
      expect(answer.status, answer.text).toBe(403);
      expect(JSON.parse(answer.text).message).toMatch(/^engine gate: /);
    }
    expect((await ask('GET', '/containers/json')).status).toBe(403);
    expect((await ask('POST', '/images/create?fromImage=debian')).status).toBe(403);
  });

  it('touches no container that is not the farm’s', async () => {
    const other = docker('create', '--interactive', DEFAULT_LIMITS.image, 'cat');
    try {
      for (const [method, rest] of [
        ['POST', '/start'],
        ['GET', '/json'],
        ['GET', '/archive?path=/etc/passwd'],
        ['POST', '/wait?condition=removed'],
        ['DELETE', '?force=true'],
      ] as const)
        expect((await ask(method, `/containers/${other}${rest}`)).status, `${method} ${rest}`).toBe(403);
      expect((await ask('POST', `/commit?container=${other}`)).status).toBe(403);
      expect(await askStream(`/containers/${other}/attach?stream=1&stdin=1`)).toBe(403);
      expect(await askStream('/session')).toBe(403);
      expect((await ask('DELETE', `/images/${DEFAULT_LIMITS.image}`)).status).toBe(403);
      expect(docker('inspect', '--format', '{{.State.Status}}', other)).toBe('created');
    } finally {
      docker('rm', '--force', other);
    }
  });

  it('never starts a container that only lends its files, whatever its image says of itself', async () => {
    const made = await ask('POST', '/containers/create', { Image: DEFAULT_LIMITS.image, Cmd: ['/'] });
    expect(made.status, made.text).toBe(201);
    const { Id } = JSON.parse(made.text) as { Id: string };
    try {
      expect((await ask('POST', `/containers/${Id}/start`)).status).toBe(403);
      // A gate that has forgotten what it made asks the engine.
      const after = new EngineGate({ dockerHost: null, log: pino({ level: 'silent' }) });
      const second = path.join(folder, 'second.sock');
      await after.listen({ path: second });
      const status = await new Promise((resolve) =>
        http
          .request({ socketPath: second, method: 'POST', path: `/containers/${Id}/start` }, (a) =>
            resolve(a.statusCode),
          )
          .end(),
      );
      await after.close();
      expect(status).toBe(403);
    } finally {
      expect((await ask('DELETE', `/containers/${Id}?force=true`)).status).toBe(204);
    }
  });

  it('says so where there is no engine behind it', async () => {
    const alone = new EngineGate({ dockerHost: `unix://${folder}/nothing.sock`, log: pino({ level: 'silent' }) });
    const at = path.join(folder, 'alone.sock');
    await alone.listen({ path: at });
    const lone = createDockerDriver({ dockerHost: `unix://${at}` });
    expect(await lone.answers()).toBe(false);
    await expect(lone.prepare(DEFAULT_LIMITS.image)).rejects.toMatchObject({ code: 'docker_unreachable', exit: 3 });
    await lone.close();
    await alone.close();
  });
});

function runnerOf(): string {
  return execFileSync(new URL('../../../infra/runner/build.sh', import.meta.url).pathname, ['--hash'], {
    encoding: 'utf8',
  }).trim();
}
