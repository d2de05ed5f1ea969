// `farm run`: checks the spec and what it needs, opens or resumes the run, brings workers unless there are some, follows
// it to its end, and leaves nothing behind however it ends.

import { randomBytes } from 'node:crypto';
import { Driver, type DriverEnd } from '../../producer/driver.ts';
import { openRun } from '../../producer/open-run.ts';
import type { Config } from '../../shared/config.ts';
import { readConfig } from '../../shared/config.ts';
import { EXIT, FarmError, inputError, missingError } from '../../shared/errors.ts';
import { Fleet } from '../../shared/fleet/fleet.ts';
import type { Slots } from '../../shared/lane.ts';
import { keyOfRun } from '../../shared/ledger/key-of-run.ts';
import { type RunStatus, readStatus } from '../../shared/ledger/run-status.ts';
import { openLog } from '../../shared/log.ts';
import { processIdentity } from '../../shared/process-identity.ts';
import { MemberQueue } from '../../shared/queue.ts';
import { SHARED_REALM } from '../../shared/realm.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { tellSilence } from '../../shared/redis/silence.ts';
import { printProblems } from '../../shared/spec/problem.ts';
import { readSpec } from '../../shared/spec/reader.ts';
import { openStoreAddress, RUN_ID } from '../../shared/store/open.ts';
import { manifestKey } from '../../shared/store/shard-name.ts';
import type { Store } from '../../shared/store/store.ts';
import { findCrew } from '../crew.ts';
import { Interrupts } from '../interrupts.ts';
import { Progress } from '../progress.ts';
import { Screen } from '../screen.ts';
import { buryIn, Supervisor } from '../supervisor.ts';

export interface RunArguments {
  spec: string;
  runId: string | null;
  workers: number | Slots | null;
  detach: boolean;
  json: boolean;
}

export async function run(args: RunArguments): Promise<number> {
  const config = readConfig();
  const level = process.stderr.isTTY ? 'warn' : 'info';
  const report = await runSpec(config, args, {
    level,
    environment: {},
    onOpened: (id) => !args.json && process.stdout.write(`${id}\n`),
  });
  if (args.json && report.status !== null) process.stdout.write(`${JSON.stringify(report.status)}\n`);
  return report.exit;
}

export interface RunSetting {
  /** Of this process's and its workers' logs, unless LOG_LEVEL says otherwise. */
  level: string;
  /** For the workers, beside this process's own. */
  environment: Record<string, string>;
  /** Its workers are its own: nobody else would reach its verifier. */
  alone?: boolean;
  onOpened: (run: string) => void;
}

export interface RunReport {
  exit: number;
  run: string;
  status: RunStatus | null;
}

/** The verb's body, for `demo` too. */
export async function runSpec(config: Config, args: RunArguments, setting: RunSetting): Promise<RunReport> {
  const id = args.runId ?? `run-${randomBytes(5).toString('hex')}`;
  if (!RUN_ID.test(id))
    throw inputError(
      'run_id',
      `--run-id ${JSON.stringify(id)} is not a run id`,
      'letters, digits, ".", "_" and "-", at most 64, the first a letter or digit',
    );
  const read = await readSpec(args.spec, config);
  if (!read.ok) {
    process.stderr.write(`${printProblems(read.problems)}\n`);
    return { exit: EXIT.input, run: id, status: null };
  }
  if (read.kind !== 'run')
    throw inputError(
      'spec_without_tasks',
      `${args.spec} configures a verifier, and no run: it has no tasks`,
      'use it with ./farm check or ./farm score',
    );
  const { spec, source } = read;
  for (const warning of read.warnings) process.stderr.write(`farm: ${warning}\n`);
  if (source.verified > 0 && config.ambertraceApiKey === null) {
    throw inputError(
      'no_key',
      'the spec has verified tasks, and AMBERTRACE_API_KEY is not set',
      'put the platform’s query-only key (at_…) into the environment',
    );
  }
  const interrupts = new Interrupts();
  const store = await openStoreAddress(spec.store);
  for (const warning of (await store.probe()).warnings) process.stderr.write(`farm: ${warning}\n`);

  const screen = new Screen();
  const log = openLog(config, 'run', setting.level, screen.lines);
  const { redis, place, warnings } = await connectRedis(config);
  for (const warning of warnings) process.stderr.write(`farm: ${warning}\n`);
  const { workers: slots, detach } = args;
  const wish = { run: id, sandbox: spec.sandbox, source, alone: setting.alone ?? false, slots, detach };
  const { key, realm, orders, ...crew } = await keyOfRun(redis, id, spec.verifier, config.ambertraceApiKey)
    .then(async (key) => ({ key, ...(await findCrew(config, redis, { ...wish, key })) }))
    .catch(async (error: unknown) => {
      redis.disconnect();
      await store.close();
      throw error;
    });
  for (const warning of crew.warnings) process.stderr.write(`farm: ${warning}\n`);
  const owner = processIdentity();
  const queue = new MemberQueue(place, realm);
  const fleet = new Fleet(redis, place, realm);
  const silence = tellSilence(redis, place.address, log);
  let supervisor: Supervisor | null = null;
  try {
    const opened = await openRun({
      run: id,
      redis,
      spec,
      source,
      store,
      realm,
      owner,
      key: key.wanted,
    });
    setting.onOpened(id);
    if (detach) {
      await opened.ledger.undrive(owner);
      return { exit: EXIT.ok, run: id, status: await report(redis, id) };
    }
    const progress = new Progress(id, opened.settings.plan, screen);
    const driver = new Driver(id, opened.epoch, {
      redis,
      queue,
      fleet,
      settings: opened.settings,
      groups: opened.settings.plan.groups,
      groupSize: opened.settings.plan.groupSize,
      plan: opened.plan,
      owner,
      log,
      onTick: (tick) => progress.show(tick),
    });
    const over = (await opened.ledger.field('manifest')) !== null;
    if (over) await requireManifest(store, id);
    if (orders.length > 0 && !over) {
      const environment = { LOG_LEVEL: config.logLevel ?? setting.level, ...setting.environment };
      supervisor = new Supervisor({
        orders,
        environment,
        log,
        lines: screen.lines,
        onDeath: (worker, signature) => buryIn(redis, realm, worker, signature),
      });
    }
    interrupts.onForce(() => supervisor?.kill());
    interrupts.onFirst(() => {
      process.stderr.write('\nfarm: draining (members at work get up to 30 s; once more to stop now)\n');
      void opened.ledger.setField('draining', '1').catch(() => {});
      driver.drain();
    });
    const refused = over && (await opened.ledger.field('state')) === 'stopped';
    const end: DriverEnd = over ? { state: refused ? 'stopped' : 'done' } : await driver.drive();
    progress.end();
    if ('drained' in end) await supervisor?.drain(interrupts.second);
    else await supervisor?.stop();
    if ('silent' in end)
      throw missingError(
        'redis_silent',
        'Redis has not answered for longer than limits.paused_s',
        `when it is back, run the same command with --run-id ${id}: it goes on where it was`,
      );
    // Redis may be away; a lease that is not given back is over by itself.
    await opened.ledger.undrive(owner).catch(() => {});
    await opened.ledger.setField('draining', '0').catch(() => {});
    if ('state' in end && end.state !== 'stopped' && realm !== SHARED_REALM) await queue.obliterate();
    const status = await report(redis, id).catch(() => null);
    if ('drained' in end) process.stderr.write(`farm: run the same command with --run-id ${id} to go on\n`);
    return { exit: await exitOf(end, opened.ledger, interrupts), run: id, status };
  } finally {
    await supervisor?.stop();
    await queue.close().catch(() => {});
    fleet.close();
    silence.stop();
    redis.disconnect();
    await store.close();
    interrupts.close();
  }
}

/** A run that the ledger has as done is done only with what the store promises. */
async function requireManifest(store: Store, run: string): Promise<void> {
  if ((await store.head(manifestKey(run))) !== null) return;
  throw missingError(
    'manifest_missing',
    `run ${run} is done, and its manifest is not in ${store.address}`,
    `put the store back, or forget the run with ./farm rm ${run} and run it anew`,
  );
}

async function exitOf(
  end: DriverEnd,
  ledger: { field(name: string): Promise<string | null> },
  interrupts: Interrupts,
): Promise<number> {
  if ('drained' in end) return interrupts.exitCode;
  if (!('state' in end))
    throw new FarmError('driver_lost', 'another command drives this run now', {
      exit: EXIT.missing,
      hint: 'follow it with ./farm status',
    });
  if (end.state !== 'stopped') return EXIT.ok;
  process.stderr.write(`farm: the run stopped: ${(await ledger.field('reason')) ?? ''}\n`);
  return Number((await ledger.field('exit')) || EXIT.missing);
}

async function report(redis: Parameters<typeof readStatus>[0], run: string): Promise<RunStatus | null> {
  const status = await readStatus(redis, run);
  if (status === null) return null;
  const { members, groups } = status;
  const causes = Object.entries(members.by_cause).map(([cause, n]) => `${n} ${cause}`);
  const without = members.no_result > 0 ? `, ${members.no_result} without result (${causes.join(', ')})` : '';
  process.stderr.write(
    `farm: run ${run} ${status.state}: ${groups.closed} of ${groups.planned} groups closed, ${members.completed} members completed${without}\n`,
  );
  return status;
}
