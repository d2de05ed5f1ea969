import { describe, expect, test } from 'vitest';
import { type Asker, Askers, answersInTime } from '../../src/gateway/asker.ts';
import { scoreItems } from '../../src/gateway/score.ts';
import type { VerifierConfig } from '../../src/shared/spec/verifier-config.ts';
import type { Answer } from '../../src/workers/verify/client.ts';
import type { VerifyResult } from '../../src/workers/verify/verify.ts';
import type { Query } from '../../src/workers/verify/wire-request.ts';
import { completion, verifierOf } from '../support/gateway-fixture.ts';

const query = { query: 'q', facts: new Map(), relations: null, predictions: null } as Query;
const asker = (ask: Asker['ask']): Asker => ({ ask, close: async () => {} });
const never = new AbortController().signal;
const silent = asker(() => new Promise(() => {}));

describe('an asker that does not keep its word', () => {
  test('is not waited for beyond the deadline', async () => {
    const began = performance.now();
    const answers = await answersInTime(silent, [query, query], {
      epoch: 'e',
      cache: true,
      deadlineMs: 100,
      signal: never,
    });
    expect(performance.now() - began).toBeLessThan(20_000);
    expect(answers).toMatchObject([{ kind: 'unavailable' }, { kind: 'unavailable' }]);
  });

  test('nor when nobody waits any more, nor where it fails', async () => {
    const caller = new AbortController();
    const left = answersInTime(silent, [query], { epoch: 'e', cache: true, deadlineMs: 60_000, signal: caller.signal });
    caller.abort();
    expect(await left).toMatchObject([{ kind: 'unavailable' }]);
    const broken = asker(() => Promise.reject(new Error('broken')));
    expect(
      await answersInTime(broken, [query], { epoch: 'e', cache: true, deadlineMs: 30_000, signal: never }),
    ).toMatchObject([{ kind: 'unavailable', detail: expect.stringContaining('broken') }]);
  });
});

test('a large request asks each query once, whichever slices it stands in, and gives up what is left when it is answered', async () => {
  let asked = 0;
  let signal: AbortSignal = never;
  const data = new Map();
  const counting = asker(async (queries, options): Promise<Answer[]> => {
    asked += queries.length;
    signal = options.signal;
    return queries.map(() => ({ kind: 'verdict', data }));
  });
  const config = { name: 'c', verifier: verifierOf('http://127.0.0.1:1'), epoch: 'e' };
  const items = Array.from({ length: 1_000 }, (_, i) => ({
    prompt: 'p',
    completion: completion(i % 300),
    metadata: null,
  }));
  const results: VerifyResult[] = [];
  await scoreItems(
    new Askers(() => counting),
    config,
    items,
    { until: performance.now() + 50_000, signal: never },
    (start, slice) => {
      for (const [i, one] of slice.entries()) results[start + i] = one;
    },
  );
  expect([asked, results.length, results.every((one) => one.status === 'completed')]).toEqual([300, 1_000, true]);
  expect(signal.aborted).toBe(true);
});

test('configs with the same platform and limits share an asker; with limits of their own they have their own', () => {
  const opened: VerifierConfig[] = [];
  const askers = new Askers((verifier) => {
    opened.push(verifier);
    return silent;
  });
  const one = verifierOf('http://127.0.0.1:1');
  for (const verifier of [one, { ...one, floor: -2 }, { ...one, requestsPerSecond: 5 }, { ...one, maxConcurrency: 2 }])
    askers.of(verifier);
  expect(opened.map(({ requestsPerSecond }) => requestsPerSecond)).toEqual([one.requestsPerSecond, 5, null]);
});
