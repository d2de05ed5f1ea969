// `farm bench NAME`: every figure with its baseline measured in the same run; `chaos` has a verdict in place of figures.

import { randomInt } from 'node:crypto';
import { benchChaos, printChaos } from '../../bench/chaos/chaos.ts';
import { FAULT_KINDS, type FaultKind } from '../../bench/chaos/schedule.ts';
import { benchVerify, printVerify } from '../../bench/verify.ts';
import { EXIT, inputError } from '../../shared/errors.ts';
import { Interrupts } from '../interrupts.ts';

const LATER = ['sandbox', 'queue', 'scale'];
const SEEDS = 1_000_000;

export interface BenchArguments {
  name: string;
  json: boolean;
  seed: bigint | null;
  kills: number | null;
  faults: number | null;
  only: readonly string[];
  members: number | null;
  minutes: number | null;
}

export async function bench(args: BenchArguments): Promise<number> {
  if (LATER.includes(args.name)) throw inputError('not_built', `bench ${args.name} is not built yet`);
  if (args.name === 'chaos') return await chaos(args);
  if (args.name !== 'verify')
    throw inputError('bench', `there is no benchmark ${JSON.stringify(args.name)}`, 'verify and chaos are');
  const result = await benchVerify();
  process.stdout.write(args.json ? `${JSON.stringify(result)}\n` : printVerify(result));
  return EXIT.ok;
}

function kindOf(text: string): FaultKind {
  const kind = FAULT_KINDS.find((known) => known === text);
  if (kind === undefined) throw inputError('fault', `--only ${text} is no kind of fault`, FAULT_KINDS.join(', '));
  return kind;
}

async function chaos(args: BenchArguments): Promise<number> {
  const interrupts = new Interrupts();
  const enough = new AbortController();
  interrupts.onFirst(() => enough.abort());
  const kills = args.kills ?? 12;
  const report = await benchChaos({
    seed: args.seed ?? BigInt(randomInt(SEEDS)),
    kills,
    troubles: args.faults ?? Math.ceil(kills / 2),
    ...(args.only.length === 0 ? {} : { only: args.only.map(kindOf) }),
    members: args.members ?? Math.max(100, kills * 25),
    minutes: args.minutes ?? 30,
    tell: (line) => process.stderr.write(`${line}\n`),
    signal: enough.signal,
  });
  process.stdout.write(args.json ? `${JSON.stringify(report)}\n` : printChaos(report));
  if (enough.signal.aborted) return interrupts.exitCode;
  return report.violations.length === 0 ? EXIT.ok : EXIT.unsound;
}
