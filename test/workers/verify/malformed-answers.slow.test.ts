// 20,000 malformed answers over real connections: each means what the table says, nothing but verdicts and denials is
// kept, and a process that read them all is no larger for it. FARM_MALFORMED=from-to tries other numbers.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ensureBuilt } from '../../support/built.ts';
import { type Expected, malformedCase, startMalformed } from '../../support/malformed-answers.ts';

const CLIENT = fileURLToPath(new URL('../../support/malformed-client.mjs', import.meta.url));
const [FROM, TO] = (process.env.FARM_MALFORMED ?? '0-20000').split('-').map(Number) as [number, number];

type Line = [number: number, told: (number | string)[], kept: string[]];

interface Memory {
  before: number;
  after: number;
  peak: number;
}

async function askAll(baseUrl: string, hear: (line: Line) => void): Promise<Memory> {
  const cases = Array.from({ length: TO - FROM }, (_, i) => malformedCase(FROM + i).expected.length);
  const warm = Math.floor(cases.length / 4);
  const child = spawn(process.execPath, ['--expose-gc', CLIENT, JSON.stringify({ baseUrl, from: FROM, cases, warm })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    for await (const text of createInterface({ input: child.stdout })) {
      const line = JSON.parse(text) as Line | { rss: Memory };
      if (!Array.isArray(line)) return line.rss;
      hear(line);
    }
    throw new Error('the client ended before its time');
  } finally {
    child.kill('SIGKILL');
  }
}

// By the default weights: form 0.1, certified 0.5, the right answer 1, a rejected fact −0.2.
const REWARDS: Partial<Record<Expected, number>> = {
  right: 1.6,
  uncertified: 1.1,
  denial: 1.1 - 0.2,
  'plain denial': 1.1,
};

function fits(expected: Expected, told: number | string): boolean {
  if (expected === 'none') return told === 'verifier_unavailable';
  if (expected === 'refused') return told === 'misconfigured';
  if (expected === 'any') return told === 'verifier_unavailable' || (typeof told === 'number' && Number.isFinite(told));
  return told === REWARDS[expected];
}

test('20,000 malformed answers are read for what they are, and memory stays where it was', {
  timeout: 180_000 + (TO - FROM) * 10,
}, async () => {
  ensureBuilt();
  const server = await startMalformed();
  const wrong: string[] = [];
  const kinds = new Set<string>();
  let heard = 0;
  const memory = await askAll(server.baseUrl, ([number, told, kept]) => {
    heard++;
    const { kind, expected, single } = malformedCase(number);
    kinds.add(kind);
    const answered = told.filter((one) => typeof one === 'number').length;
    const sound = kept.every((one) => one === 'verdict' || one === 'denial') && kept.length === answered;
    if (!sound || told.length !== expected.length || !expected.every((one, i) => fits(one, told[i] as number)))
      wrong.push(`${number} (${kind}${single ? ', single' : ''}): ${told} kept ${kept}, not ${expected}`);
  }).finally(() => server.close());
  expect(wrong.slice(0, 30)).toEqual([]);
  expect(heard).toBe(TO - FROM);
  expect(kinds.size).toBeGreaterThan(20);
  expect(server.strayed).toEqual([]);
  expect(memory.after - memory.before).toBeLessThan(64);
  expect(memory.peak - memory.before).toBeLessThan(400);
});
