// `farm bench NAME`: every figure with its baseline measured in the same run.

import { benchSandbox, type SandboxBench } from '../../bench/sandbox.ts';
import { printSandbox } from '../../bench/sandbox-print.ts';
import { benchVerify, printVerify } from '../../bench/verify.ts';
import { EXIT, inputError } from '../../shared/errors.ts';

const LATER = ['queue', 'scale', 'chaos'];

export interface BenchArguments {
  name: string;
  json: boolean;
  seed: bigint;
  full: boolean;
  grades: number | null;
  tasks: string | null;
  trusted: boolean;
}

/** Null: interrupted, with nothing left behind. */
async function interruptible(args: BenchArguments): Promise<SandboxBench | null> {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => ending.abort(new Error(`interrupted by ${signal}`)));
  try {
    return await benchSandbox({ ...args, signal: ending.signal });
  } catch (error) {
    if (ending.signal.aborted) return null;
    throw error;
  }
}

export async function bench(args: BenchArguments): Promise<number> {
  if (LATER.includes(args.name)) throw inputError('not_built', `bench ${args.name} is not built yet`);
  const print = (result: unknown, text: string): void => {
    process.stdout.write(args.json ? `${JSON.stringify(result)}\n` : text);
  };
  if (args.name === 'verify') {
    const result = await benchVerify();
    print(result, printVerify(result));
    return EXIT.ok;
  }
  if (args.name !== 'sandbox')
    throw inputError('bench', `there is no benchmark ${JSON.stringify(args.name)}`, 'sandbox and verify are two');
  const result = await interruptible(args);
  if (result === null) return EXIT.interrupted;
  print(result, printSandbox(result));
  const wrong = (result.grades?.wrong.length ?? 0) + result.rows.reduce((sum, row) => sum + row.wrong, 0);
  return wrong > 0 || result.containers_left > 0 ? EXIT.unsound : EXIT.ok;
}
