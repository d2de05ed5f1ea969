// Every verb explains itself: `--help` is what a newcomer types first.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, MAIN } from '../support/built.ts';

const farm = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [MAIN, ...args])).stdout;

let verbs: string[];
beforeAll(async () => {
  ensureBuilt();
  const help = await farm('--help');
  verbs = [...help.matchAll(/^ {2}([a-z][a-z-]*)( |$)/gm)].map((m) => m[1] as string).filter((verb) => verb !== 'help');
});

describe('help', () => {
  it('lists the verbs, and each of them explains itself', async () => {
    expect(verbs).toEqual(expect.arrayContaining(['demo', 'test', 'run', 'status', 'results', 'score', 'verify-run']));
    for (const verb of verbs) expect(await farm(verb, '--help')).toContain(`Usage: farm ${verb}`);
  });
});
