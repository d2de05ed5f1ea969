// Many machines: producer with gateway, Redis, an S3 store, two workers and a trainer, each in a network namespace with an address of
// its own. One after another is cut off and comes back; every member is accounted for, and the trainer's stream has neither
// a gap nor a repetition.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';
import { RunLedger } from '../../src/shared/ledger/run-ledger.ts';
import { MAIN } from '../support/built.ts';
import { TestFarm } from '../support/farm.ts';
import { type Machine, TestNetwork } from '../support/network.ts';
import { KEYS, REGION, startVersitygw, whereIs } from '../support/s3-server.ts';
import { until } from '../support/until.ts';
import { expectAccounted, succeed } from '../support/whole-run.ts';

const CONF = fileURLToPath(new URL('../../infra/redis.conf', import.meta.url));
const TRAINER = fileURLToPath(new URL('../support/trainer.mjs', import.meta.url));
const [RUN, GROUPS, SIZE, KEY, PASSWORD] = ['afar', 150, 4, 'key-of-the-gateway', 'password-of-the-redis'];
const PATIENCE = { withinMs: 120_000, everyMs: 50 };

test('machines that are cut off and come back cost no member, and the trainer no record', async ({
  onTestFinished,
}) => {
  const network = new TestNetwork();
  const [ledger, shop, producer, one, two, desk] = ['ledger', 'shop', 'producer', 'one', 'two', 'desk'].map((name) =>
    network.machine(name),
  ) as [Machine, Machine, Machine, Machine, Machine, Machine];
  // A second door to the same folder, on the host: for looking at it afterwards.
  const near = await startVersitygw();
  const farm = new TestFarm({
    ...near.env,
    S3_ENDPOINT: `http://${shop.address}:7070`,
    FARM_STORE: `s3://${near.bucket}/afar`,
    REDIS_URL: `redis://:${PASSWORD}@${ledger.address}:6379`,
    FARM_API_KEY: KEY,
  });
  const processes: ChildProcess[] = [];
  /** On a machine, with the farm's environment; what it says is kept. */
  const on = (
    machine: Machine,
    ...command: string[]
  ): { said: () => string; errors: () => string; child: ChildProcess } => {
    const [program, ...args] = [...machine.inside, ...command] as [string, ...string[]];
    const child = spawn(program, args, { env: farm.env, stdio: ['ignore', 'pipe', 'pipe'] });
    processes.push(child);
    let [said, errors] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    return { said: () => said, errors: () => errors, child };
  };
  onTestFinished(async () => {
    for (const child of processes) child.kill('SIGKILL');
    watching.disconnect();
    await farm.close();
    await near.close();
    network.close();
  });

  const folder = path.join(farm.data, 'ledger');
  mkdirSync(folder);
  const socket = path.join(folder, 's');
  const listen = ['--bind', ledger.address, '--requirepass', PASSWORD, '--unixsocket', socket, '--dir', folder];
  on(
    shop,
    'env',
    `ROOT_ACCESS_KEY=${KEYS.AWS_ACCESS_KEY_ID}`,
    `ROOT_SECRET_KEY=${KEYS.AWS_SECRET_ACCESS_KEY}`,
    whereIs('versitygw'),
    '--port',
    `${shop.address}:7070`,
    '--region',
    REGION,
    '--quiet',
    'posix',
    near.folder,
  );
  on(ledger, 'redis-server', CONF, '--port', '6379', ...listen);
  // Ours, by its socket: a file knows no network.
  const watching = new Redis({ path: socket, password: PASSWORD, retryStrategy: () => 50, maxRetriesPerRequest: null });
  watching.on('error', () => {});
  const run = new RunLedger(watching, RUN);
  const field = async (name: string): Promise<number> => Number(await run.field(name));
  const further = async (members: number): Promise<void> => {
    const before = await field('accepted');
    await until(`${members} members more`, async () => (await field('accepted')) >= before + members, PATIENCE);
  };
  await watching.ping();

  const node = process.execPath;
  const farmOn = (machine: Machine, ...args: string[]) => on(machine, node, MAIN, ...args);
  farmOn(producer, 'worker', 'collect');
  const gateway = farmOn(producer, 'serve', '--host', producer.address, '--port', '8787');
  const workers = [one, two].map((machine) => farmOn(machine, 'worker', 'rollout', '--concurrency', '3'));
  for (const { errors } of workers) await until('a worker is ready', () => errors().includes('"ready"'), PATIENCE);
  await until('the gateway is there', () => gateway.errors().includes('gateway at'), PATIENCE);

  const code = 'import time; time.sleep(0.5); print("hello")';
  const spec = farm.file('afar.json', {
    name: RUN,
    group_size: SIZE,
    tasks: Array.from({ length: GROUPS }, (_, i) => ({
      id: `c${i}`,
      env: 'command',
      config: { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 60 },
    })),
    policy: { kind: 'scripted', actions: [['python3', '-c', code]] },
    sandbox: { timeout_s: 60 },
  });
  const base = `http://${producer.address}:8787`;
  const trainer = on(desk, node, TRAINER, base, KEY, RUN, String(GROUPS), spec);
  const over = new Promise((resolve) => trainer.child.once('close', resolve));
  const records = (): GroupRecord[] =>
    trainer
      .said()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as GroupRecord);
  await until('the trainer has its first records', () => records().length >= 2, PATIENCE);

  // A worker: what it had begun is given back when its leases are over, and the other goes on.
  one.cut();
  const lost = await field('lost');
  await until('its members are given back', async () => (await field('lost')) > lost, PATIENCE);
  await further(10);
  one.mend();
  await until('its late answers are told that they are late', async () => (await field('late')) > 0, PATIENCE);

  // The ledger: nobody begins anything, and everybody finds it again.
  await further(5);
  ledger.cut();
  await until('a worker says so', () => workers.some(({ errors }) => errors().includes('waiting for Redis')), PATIENCE);
  ledger.mend();
  await further(10);

  // The trainer: its line is dead for longer than it believes in it; it goes on where it was.
  const [heard, said] = [records().length, trainer.errors().length];
  desk.cut();
  await until('it gives its line up', () => trainer.errors().length > said, PATIENCE);
  desk.mend();
  await until('it has more records', () => records().length > heard, PATIENCE);

  // The store: what closes waits in the ledger, or the run for its store; both go on by themselves.
  shop.cut();
  await until('the run waits for its store', async () => (await run.field('state')) === 'paused', PATIENCE);
  shop.mend();
  await further(4);

  // The producer, gateway and collector: members at work go on, what is planned waits.
  producer.cut();
  await until(
    'members at work have ended',
    async () => (await field('out:rollout')) === 0 || (await field('accepted')) === GROUPS * SIZE,
    PATIENCE,
  );
  producer.mend();

  await over;
  const seen = records();
  expect(seen.map(({ group }) => group).sort((a, b) => a - b)).toEqual(Array.from({ length: GROUPS }, (_, i) => i));
  await until('the run is done', async () => (await run.field('state')) === 'done', PATIENCE);
  // From the store, on any machine: the same records in the same order.
  farm.env.S3_ENDPOINT = near.endpoint;
  farm.env.REDIS_URL = `unix://:${PASSWORD}@${socket}`;
  await expectAccounted(farm, RUN, GROUPS, SIZE);
  const results = (await succeed(farm, 'results', RUN)).split('\n').filter(Boolean);
  expect(seen).toEqual(results.map((line) => JSON.parse(line)));
}, 600_000);
