// The images of boxes on their way to an engine that has none: a second real engine, started as infra/k8s starts it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { DEFAULT_LIMITS, type SandboxDriver } from '../../../src/shared/sandbox.ts';
import { EngineGate } from '../../../src/workers/rollout/engine-gate/gate.ts';
import { bringImages } from '../../../src/workers/rollout/engine-gate/images.ts';
import { createDockerDriver } from '../../../src/workers/rollout/sandbox/docker.ts';
import { ensureBuilt, MAIN, ROOT } from '../../support/built.ts';
import { docker } from '../../support/compose.ts';
import { TestEngine } from '../../support/engine.ts';

const PYTHON = DEFAULT_LIMITS.image;
const FILE = 'python.tar';
const log = pino({ level: 'silent' });
const folder = mkdtempSync(path.join(tmpdir(), 'farm-test-images-'));
const engine = new TestEngine();
const idOf = (host: string | null, name: string): string =>
  docker(...(host === null ? [] : ['--host', host]), 'image', 'inspect', '--format', '{{.Id}}', name);
const bring = (): Promise<void> => bringImages(engine.host, folder, log);
let runner = '';

/** As infra/images/build.sh does it, uncompressed. */
function pack(name: string, file: string): { file: string; name: string; id: string } {
  docker('save', '--output', path.join(folder, file), name);
  return { file, name, id: idOf(null, name) };
}

/** Without its addresses: those are the test's own. */
function argumentsInKubernetes(): string[] {
  interface Pod {
    kind: string;
    spec: { template: { spec: { initContainers: { name: string; args: string[] }[] } } };
  }
  const documents = parseAllDocuments(readFileSync(path.join(ROOT, 'infra/k8s/rollout-worker.yaml'), 'utf8'));
  const pod = documents.map((one) => one.toJS() as Pod).find((one) => one.kind === 'Deployment');
  const args = pod?.spec.template.spec.initContainers.find((one) => one.name === 'engine')?.args ?? [];
  return args.filter((one) => one.startsWith('--') && !one.startsWith('--host='));
}

beforeAll(() => {
  ensureBuilt();
  runner = docker('images', '--format', '{{.Repository}}:{{.Tag}}', 'rollout-farm/runner').split('\n')[0] as string;
  const list = [pack(PYTHON, FILE), pack(runner, 'runner.tar')];
  writeFileSync(path.join(folder, 'images.json'), JSON.stringify(list));
});

afterAll(async () => {
  await engine.close();
  rmSync(folder, { recursive: true });
});

describe('an engine that has no images', () => {
  it('is waited for, and a gate that is stopped meanwhile ends', async () => {
    const env = { ...process.env, DOCKER_HOST: engine.host, LOG_LEVEL: 'info' };
    const args = [MAIN, 'engine-gate', '--listen', `unix://${folder}/gate.sock`, '--images', folder];
    const gate = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    gate.stderr.setEncoding('utf8');
    for await (const text of gate.stderr as AsyncIterable<string>) {
      said += text;
      if (said.includes('waiting for the Docker engine')) gate.kill('SIGTERM');
    }
    if (gate.exitCode === null && gate.signalCode === null) await once(gate, 'exit');
    expect([gate.signalCode, gate.exitCode], said).toEqual(['SIGTERM', null]);
  });

  it('has them under the same ids before the gate listens, and boxes run in it', async () => {
    const brought = bring();
    const args = argumentsInKubernetes();
    expect(args.length).toBeGreaterThan(2);
    engine.start(args);
    await brought;
    for (const name of [PYTHON, runner]) expect(idOf(engine.host, name), name).toBe(idOf(null, name));

    const gate = new EngineGate({ dockerHost: engine.host, log });
    const socket = path.join(folder, 'gate.sock');
    await gate.listen({ path: socket });
    const driver: SandboxDriver = createDockerDriver({ dockerHost: `unix://${socket}` });
    try {
      expect((await driver.prepare(PYTHON)).imageId).toBe(idOf(null, PYTHON));
      const labels = { farm: 'images-test', worker: 'images-test' };
      const box = await driver.open(DEFAULT_LIMITS, labels, new AbortController().signal);
      const argv = ['python3', '-c', 'print("said")'];
      const ran = await box.run({ argv, timeoutMs: 60_000, outputBytes: 1_024 });
      await box.close();
      expect([ran.cause, String(ran.stdout)]).toEqual(['exit', 'said\n']);
    } finally {
      await driver.close();
      await gate.close();
    }
    expect(engine.docker('ps', '--all', '--quiet')).toBe('');
  });

  it('is left alone once it has them', async () => {
    renameSync(path.join(folder, FILE), path.join(folder, 'away'));
    await bring();
    renameSync(path.join(folder, 'away'), path.join(folder, FILE));
  });

  it('that has an older image of the name gets the gate’s, and a gate whose archive is cut says so and does not listen', async () => {
    const right = idOf(null, PYTHON);
    const older = (): void => void engine.docker('tag', runner, PYTHON);
    older();
    await bring();
    expect(idOf(engine.host, PYTHON)).toBe(right);

    older();
    truncateSync(path.join(folder, FILE), 3_000_000);
    await expect(bring()).rejects.toMatchObject({ code: 'image_missing', message: expect.stringContaining('EOF') });
  });
});
