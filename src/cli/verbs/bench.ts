// `farm bench NAME`: every figure with its baseline measured in the same run; `chaos` has a verdict in place of figures.

import { randomInt } from 'node:crypto';
import { benchChaos, printChaos } from '../../bench/chaos/chaos.ts';
import { FAULT_KINDS, type FaultKind, STORES, type StoreKind, troublesOf } from '../../bench/chaos/schedule.ts';
import { benchQueue } from '../../bench/queue.ts';
import { GROUP } from '../../bench/queue-arms.ts';
import { printQueue } from '../../bench/queue-print.ts';
import { benchSandbox } from '../../bench/sandbox.ts';
import { printSandbox } from '../../bench/sandbox-print.ts';
import { benchScale } from '../../bench/scale.ts';
import { printScale } from '../../bench/scale-print.ts';
import { benchVerify } from '../../bench/verify.ts';
import { printVerify } from '../../bench/verify-print.ts';
import { readConfig } from '../../shared/config.ts';
import { EXIT, inputError } from '../../shared/errors.ts';
import { Interrupts } from '../interrupts.ts';

const SEEDS = 1_000_000;

export interface BenchArguments {
  name: string;
  json: boolean;
  seed: bigint | null;
  kills: number | null;
  faults: number | null;
  only: readonly string[];
  store: string | null;
  members: number | null;
  minutes: number | null;
  full: boolean;
  grades: number | null;
  tasks: string | null;
  trusted: boolean;
}

type Bench = (args: BenchArguments, interrupts: Interrupts, signal: AbortSignal) => Promise<number>;

const BENCHES = new Map<string, Bench>([
  ['sandbox', sandbox],
  ['verify', async (args, _, signal) => print(args, await benchVerify(signal), printVerify)],
  ['queue', async (args, _, signal) => print(args, await benchQueue(signal), printQueue)],
  ['scale', scale],
  ['chaos', chaos],
]);

/** Interrupted, a bench ends what it started. */
export async function bench(args: BenchArguments): Promise<number> {
  const wanted = BENCHES.get(args.name);
  if (!wanted)
    throw inputError(
      'bench',
      `there is no benchmark ${JSON.stringify(args.name)}`,
      `there are ${[...BENCHES.keys()].join(', ')}`,
    );
  const interrupts = new Interrupts();
  const ending = new AbortController();
  interrupts.onFirst(() => ending.abort(new Error('interrupted')));
  try {
    return await wanted(args, interrupts, ending.signal);
  } catch (error) {
    if (ending.signal.aborted) return interrupts.exitCode;
    throw error;
  }
}

function print<Result>(args: BenchArguments, result: Result, text: (result: Result) => string): number {
  process.stdout.write(args.json ? `${JSON.stringify(result)}\n` : text(result));
  return EXIT.ok;
}

async function sandbox(args: BenchArguments, _: Interrupts, signal: AbortSignal): Promise<number> {
  const result = await benchSandbox({ ...args, seed: args.seed ?? 0n, signal });
  print(args, result, printSandbox);
  const wrong = (result.grades?.wrong.length ?? 0) + result.rows.reduce((sum, row) => sum + row.wrong, 0);
  return wrong > 0 || result.containers_left > 0 ? EXIT.unsound : EXIT.ok;
}

async function scale(args: BenchArguments, _: Interrupts, signal: AbortSignal): Promise<number> {
  const { store } = readConfig();
  const s3 = store.startsWith('s3://') ? store : null;
  if (args.members !== null && args.members % GROUP !== 0)
    throw inputError('members', `--members ${args.members} is no multiple of ${GROUP}, the size of a group`);
  const tell = (line: string): void => void process.stderr.write(`${line}\n`);
  if (s3 === null) tell('no arm with S3: FARM_STORE does not begin with s3://');
  return print(args, await benchScale({ members: args.members, s3, tell, signal }), printScale);
}

function kindOf(text: string, store: StoreKind): FaultKind {
  const kinds = troublesOf(store);
  const kind = kinds.find((known) => known === text);
  if (kind !== undefined) return kind;
  const elsewhere = FAULT_KINDS.some((known) => known === text && STORES.some((s) => troublesOf(s).includes(known)));
  throw inputError(
    'fault',
    elsewhere ? `--only ${text} cannot befall a farm with --store ${store}` : `--only ${text} is no kind of fault`,
    kinds.join(', '),
  );
}

function storeOf(text: string | null): StoreKind {
  const store = STORES.find((known) => known === (text ?? 'folder'));
  if (store === undefined) throw inputError('store', `--store ${text} is no kind of store`, STORES.join(', '));
  return store;
}

async function chaos(args: BenchArguments, interrupts: Interrupts, signal: AbortSignal): Promise<number> {
  const kills = args.kills ?? 12;
  const store = storeOf(args.store);
  const report = await benchChaos({
    seed: args.seed ?? BigInt(randomInt(SEEDS)),
    kills,
    troubles: args.faults ?? Math.ceil(kills / 2),
    ...(args.only.length === 0 ? {} : { only: args.only.map((text) => kindOf(text, store)) }),
    store,
    members: args.members ?? Math.max(100, kills * 25),
    minutes: args.minutes ?? 30,
    tell: (line) => process.stderr.write(`${line}\n`),
    signal,
  });
  process.stdout.write(args.json ? `${JSON.stringify(report)}\n` : printChaos(report));
  if (signal.aborted) return interrupts.exitCode;
  return report.violations.length === 0 ? EXIT.ok : EXIT.unsound;
}
