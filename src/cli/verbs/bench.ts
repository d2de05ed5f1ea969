// `farm bench NAME`: every figure with its baseline measured in the same run.

import { benchQueue, printQueue } from '../../bench/queue.ts';
import { benchVerify, printVerify } from '../../bench/verify.ts';
import { EXIT, inputError } from '../../shared/errors.ts';

const LATER = ['sandbox', 'scale', 'chaos'];

export async function bench(args: { name: string; json: boolean }): Promise<number> {
  if (LATER.includes(args.name)) throw inputError('not_built', `bench ${args.name} is not built yet`);
  if (args.name === 'queue') {
    const queue = await benchQueue();
    process.stdout.write(args.json ? `${JSON.stringify(queue)}\n` : printQueue(queue));
    return EXIT.ok;
  }
  if (args.name !== 'verify')
    throw inputError('bench', `there is no benchmark ${JSON.stringify(args.name)}`, 'verify and queue are there');
  const result = await benchVerify();
  process.stdout.write(args.json ? `${JSON.stringify(result)}\n` : printVerify(result));
  return EXIT.ok;
}
