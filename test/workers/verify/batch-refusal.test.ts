// A platform that refuses a whole batch has said nothing about any query of it: each is asked for itself, and only
// the one that is refused alone is denied, by the fleet as by one process.

import { expect, onTestFinished } from 'vitest';
import { type Answer, VerifierClient } from '../../../src/workers/verify/client.ts';
import { FLEET_KEY, readUpstreams } from '../../../src/workers/verify/fleet/upstream.ts';
import { fleetOfEach, OPTIONS, queriesOf, words } from '../../support/fleet.ts';
import { fault, type StubPlatform, type StubReply } from '../../support/stub-platform.ts';

const test = fleetOfEach({ tries: 2, backoffMs: 10 });

/** One process by itself. */
function clientOf({ baseUrl }: StubPlatform): VerifierClient {
  const sleep = async () => undefined;
  const client = new VerifierClient({ baseUrl, platformId: 1n, apiKey: 'at_x', concurrency: 2, tries: 2, sleep });
  onTestFinished(() => client.close());
  return client;
}

const cached = (answers: Answer[]) => answers.map((one) => ({ ...one, cached: false }));
const age = { details: [{ field: 'facts.age', message: 'is not good' }] };
const REFUSALS: [string, StubReply, string][] = [
  ['503 service_unavailable', { status: 503, body: fault('service_unavailable') }, 'denial'],
  ['500 with rejected facts', { status: 500, body: fault('x', { rejected_facts: ['age'] }) }, 'denial'],
  ['422 about facts', { status: 422, body: fault('validation_error', age) }, 'denial'],
  ['400 about facts', { status: 400, body: fault('invalid', age) }, 'denial'],
  ['400 that is not understood', { status: 400, body: fault('what') }, 'unavailable'],
  ['502 with rejected facts', { status: 502, body: fault('x', { rejected_facts: ['age'] }) }, 'unavailable'],
];

test.for(REFUSALS)(
  '%s for ten queries, one of which is the reason',
  async ([_, refusal, kind], { server, stub, fleet }) => {
    stub.behave = (call) => (call.queries.includes('query 3') ? refusal : {});
    const expected = Array.from({ length: 10 }, (__, i) => (i === 3 ? kind : 'permit'));
    expect(words(cached(await clientOf(stub).ask(queriesOf(10))))).toEqual(expected);
    expect(words(await fleet.asker().ask(queriesOf(10), OPTIONS))).toEqual(expected);
    await expect.poll(async () => (await readUpstreams(server.redis))[0]?.inFlight).toBe(0);
    expect(await server.redis.hlen(`${FLEET_KEY}:cache`)).toBe(kind === 'denial' ? 10 : 9);
  },
);

test('a refusal of every batch denies nobody who is permitted alone', async ({ stub, fleet }) => {
  stub.behave = (call) => (call.queries.length > 1 ? { status: 503, body: fault('service_unavailable') } : {});
  const all = new Array(60).fill('permit');
  expect(words(cached(await clientOf(stub).ask(queriesOf(60))))).toEqual(all);
  expect(words(await fleet.asker().ask(queriesOf(60), OPTIONS))).toEqual(all);
});

test.for<[string, StubReply]>([
  ['503 service_unavailable', { status: 503, body: fault('service_unavailable') }],
  [
    '422 about the list',
    { status: 422, body: fault('validation_error', { details: [{ field: 'body', message: 'x' }] }) },
  ],
  ['400 that is not understood', { status: 400, body: fault('what') }],
])(
  'a batch path that refuses everything, even one query, by %s denies nobody who is permitted alone',
  async ([_, refusal], { stub, fleet }) => {
    stub.behave = (call) => (call.single ? {} : refusal);
    const all = new Array(5).fill('permit');
    expect(words(cached(await clientOf(stub).ask(queriesOf(5))))).toEqual(all);
    expect(words(await fleet.asker().ask(queriesOf(5), OPTIONS))).toEqual(all);
    expect(words(await fleet.asker().ask(queriesOf(1, 50), OPTIONS))).toEqual(['permit']);
  },
);
