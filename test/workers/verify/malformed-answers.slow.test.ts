// 20,000 malformed answers over real connections: each means what the table says, nothing but verdicts and denials is
// kept, and a process that read them all is no larger for it. FARM_MALFORMED=from-to tries other numbers.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { FLEET_KEY } from '../../../src/workers/verify/fleet/upstream.ts';
import { ensureBuilt } from '../../support/built.ts';
import { makeFleet, OPTIONS, queryOf } from '../../support/fleet.ts';
import { malformedCase } from '../../support/malformed-answers.ts';
import { startMalformed } from '../../support/malformed-platform.ts';
import type { Expected } from '../../support/malformed-wire.ts';
import { startRedis } from '../../support/redis-server.ts';

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
  const child = spawn(process.execPath, ['--expose-gc', CLIENT], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify({ baseUrl, from: FROM, cases, warm }));
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
  expect(kinds.size).toBeGreaterThan(Math.min(20, (TO - FROM) / 20));
  expect(server.strayed).toEqual([]);
  expect(memory.after - memory.before).toBeLessThan(64);
  expect(memory.peak - memory.before).toBeLessThan(400);
});

const MEANS: Record<Expected, readonly string[]> = {
  right: ['verdict'],
  uncertified: ['verdict'],
  denial: ['denial'],
  'plain denial': ['denial'],
  none: ['unavailable'],
  refused: ['misconfigured'],
  any: ['verdict', 'unavailable'],
};

test('asked by the fleet, they mean the same, and only verdicts and denials stay in its cache', {
  timeout: 120_000,
}, async () => {
  const redis = await startRedis();
  const server = await startMalformed();
  const limits = { tries: 1, patienceMs: 1, callTimeoutMs: 8_000, backoffMs: 1, breakerThreshold: 1_000 };
  const fleet = makeFleet(redis, server.baseUrl, limits);
  const wrong: string[] = [];
  let keepable = 0;
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < 600) {
      const { number, kind, expected } = malformedCase(next++);
      // An upstream of its own: what was learned of one platform says nothing about another.
      const asker = fleet.asker({}, { apiKey: `at_malformed_${number}` });
      const queries = expected.map((_, item) => {
        const query = queryOf(`case ${number} item ${item}`);
        return { ...query, facts: new Map([['age', query.query]]) };
      });
      const kinds = (await asker.ask(queries, OPTIONS)).map((one) => one.kind);
      keepable += kinds.filter((one) => one === 'verdict' || one === 'denial').length;
      // Refused for one is refused for all that had no answer yet.
      const shut = expected.includes('refused') ? ['misconfigured'] : [];
      const means = (one: Expected): readonly string[] => (one === 'none' ? [...MEANS.none, ...shut] : MEANS[one]);
      if (!expected.every((one, i) => means(one).includes(kinds[i] as string)))
        wrong.push(`${number} (${kind}): ${kinds}, not ${expected}`);
      await asker.close();
    }
  };
  try {
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(wrong).toEqual([]);
    expect(await redis.redis.hlen(`${FLEET_KEY}:cache`)).toBe(keepable);
  } finally {
    await fleet.close();
    await server.close();
    await redis.close();
  }
});
