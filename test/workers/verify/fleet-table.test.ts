// Which failure means what: each row of the table over real HTTP, through the fleet's asker, for whole calls and for
// items of a batch. Only verdicts and denials may be kept; only what the infrastructure did counts for the breaker.

import { FLEET_KEY, readUpstreams } from '../../../src/workers/verify/fleet/upstream.ts';
import { fleetOfEach, OPTIONS, queriesOf, queryOf, words } from '../../support/fleet.ts';
import type { TestRedis } from '../../support/redis-server.ts';
import { fault, permitted, type StubReply } from '../../support/stub-platform.ts';
import { TIMED } from '../../support/timed.ts';

const test = fleetOfEach({ tries: 2, backoffMs: 10, patienceMs: 250 });

const html = '<html><body>no healthy instance</body></html>';
const undecided = (query: string): object => ({ ...permitted(query), status: 'unavailable', proof_checked: null });
const silent = { proof_checked: null, answer: null, decision: null, proof_summary: null, explanation: null };
const details = (field: string): object => ({ details: [{ field, message: 'is not good' }] });

interface Row {
  name: string;
  reply: StubReply;
  kind: 'permit' | 'denial' | 'unavailable' | 'misconfigured' | 'unreadable';
  /** Calls made for one query. */
  calls: number;
  kept: number;
  /** Calls that count for the breaker. */
  failures: number;
}

const verdict = { kind: 'permit', calls: 1, kept: 1, failures: 0 } as const;
const denial = { kind: 'denial', calls: 1, kept: 1, failures: 0 } as const;
const infrastructure = { kind: 'unavailable', calls: 2, kept: 0, failures: 2 } as const;
const refused = { kind: 'misconfigured', calls: 1, kept: 0, failures: 0 } as const;
const ours = { kind: 'unavailable', calls: 1, kept: 0, failures: 0 } as const;

const WHOLE: Row[] = [
  { name: 'a verdict', reply: {}, ...verdict },
  // It names no fact, so that the single path is asked whether it is about the query or about the path.
  {
    name: '503 with the envelope of a refusal',
    reply: { status: 503, body: fault('service_unavailable') },
    ...denial,
    calls: 2,
  },
  {
    name: '503 with rejected facts beside the error',
    reply: { status: 503, body: '{"ok":false,"error":{"code":"other"},"rejected_facts":[{"field":"age"}]}' },
    ...denial,
  },
  { name: '500 with missing atoms', reply: { status: 500, body: fault('x', { missing_atoms: ['a'] }) }, ...denial },
  { name: '422 about a fact', reply: { status: 422, body: fault('validation_error', details('age')) }, ...denial },
  { name: '400 about a fact', reply: { status: 400, body: fault('invalid', details('facts.age')) }, ...denial },
  { name: '200 that could not decide', reply: { items: undecided }, ...infrastructure },
  { name: '200 that could not decide, projected', reply: { items: () => silent }, ...infrastructure },
  ...[502, 503, 504].map((status) => ({
    name: `${status} of a proxy`,
    reply: { status, body: html },
    ...infrastructure,
  })),
  { name: '503 with an empty body', reply: { status: 503, body: '' }, ...infrastructure },
  { name: '200 that is not the envelope', reply: { body: html }, ...infrastructure },
  { name: '200 with a list', reply: { body: '[1]' }, ...infrastructure },
  { name: '200 with NaN', reply: { body: '{"ok":true,"data":{"answer":NaN,"results":[]}}' }, ...infrastructure },
  { name: '200 without results', reply: { body: '{"ok":true,"data":{}}' }, ...infrastructure },
  { name: 'a cut body', reply: { cut: true }, ...infrastructure },
  { name: 'a connection that is reset', reply: { reset: true }, ...infrastructure },
  { name: 'no answer', reply: { hang: true }, ...infrastructure },
  { name: '500 internal_error', reply: { status: 500, body: fault('internal_error') }, ...infrastructure },
  { name: '503 backend_unavailable', reply: { status: 503, body: fault('backend_unavailable') }, ...infrastructure },
  { name: '408', reply: { status: 408, body: fault('timeout') }, ...infrastructure },
  { name: '409', reply: { status: 409, body: fault('conflict') }, ...infrastructure },
  { name: '401', reply: { status: 401, body: fault('unauthorized') }, ...refused },
  { name: '402', reply: { status: 402, body: fault('payment_required') }, ...refused },
  { name: '403 forbidden', reply: { status: 403, body: fault('forbidden') }, ...refused },
  { name: '403 capability_disabled', reply: { status: 403, body: fault('capability_disabled') }, ...refused },
  {
    name: '404 no such platform',
    reply: { status: 404, body: fault('not_found', { message: 'no such platform' }) },
    ...refused,
  },
  { name: '413 of one small query', reply: { status: 413, body: fault('payload_too_large') }, ...infrastructure },
  {
    name: '422 about the number of one query',
    reply: { status: 422, body: fault('validation_error', details('queries')) },
    ...infrastructure,
  },
  { name: '502 with a refusal', reply: { status: 502, body: fault('service_unavailable') }, ...infrastructure },
  { name: '504 with a refusal', reply: { status: 504, body: fault('certification_failed') }, ...infrastructure },
  { name: '200 that is not ok', reply: { body: '{"data":{"results":[]}}' }, ...infrastructure },
  { name: '415 with the envelope', reply: { status: 415, body: fault('unsupported_media_type') }, ...ours },
  { name: '429 for longer than patience', reply: { status: 429, headers: { 'retry-after': '9' }, body: '' }, ...ours },
];

const of = (error: object): StubReply => ({ items: (query) => (query === 'query 1' ? error : null) });
const again = { kind: 'unavailable', calls: 2, kept: 2, failures: 1 } as const;

/** The second of three queries is answered so; `kept` counts the neighbours too. */
const ITEMS: Row[] = [
  { name: 'service_unavailable', reply: of({ code: 'service_unavailable' }), ...denial, kept: 3 },
  { name: 'validation_error', reply: of({ code: 'validation_error', ...details('age') }), ...denial, kept: 3 },
  { name: 'certification_failed', reply: of({ code: 'certification_failed' }), ...denial, kept: 3 },
  { name: 'rejected facts', reply: of({ code: 'x', rejected_facts: ['age'] }), ...denial, kept: 3 },
  { name: 'internal_error', reply: of({ code: 'internal_error' }), ...again },
  { name: 'no known code', reply: of({ code: 'what' }), ...again },
  { name: 'status 502', reply: of({ code: 'what', status_code: 502 }), ...again },
  { name: 'rate_limit', reply: of({ code: 'rate_limit_exceeded' }), ...ours, kept: 2, calls: 3 },
  { name: 'unauthorized', reply: of({ code: 'unauthorized' }), ...refused, kept: 2 },
  { name: 'capability_disabled', reply: of({ code: 'capability_disabled' }), ...refused, kept: 2 },
  { name: 'status 418', reply: of({ code: 'what', status_code: 418 }), ...ours, kept: 2 },
];

const keptNow = ({ redis }: TestRedis): Promise<number> => redis.hlen(`${FLEET_KEY}:cache`);

test.concurrent.for(WHOLE)(
  'a call with $name',
  TIMED,
  async ({ reply, kind, calls, kept, failures }, { server, stub, fleet, expect }) => {
    stub.behave = () => reply;
    const asker = fleet.asker(reply.hang ? { callTimeoutMs: 300 } : {});
    expect(words(await asker.ask(queriesOf(1), OPTIONS))).toEqual([kind]);
    expect(stub.calls.length).toBe(calls);
    await expect.poll(async () => (await readUpstreams(server.redis))[0]?.inFlight).toBe(0);
    expect(await keptNow(server)).toBe(kept);
    expect((await readUpstreams(server.redis))[0]?.counters.failures).toBe(failures);
  },
);

test.concurrent('a query of a few hundred kilobytes that is called too large is unreadable', async ({
  stub,
  fleet,
  expect,
}) => {
  stub.behave = () => ({ status: 413, body: fault('payload_too_large') });
  expect(words(await fleet.asker().ask([queryOf('x'.repeat(300_000))], OPTIONS))).toEqual(['unreadable']);
});

test.concurrent.for([413, undefined])(
  'a small item that is called too large (status_code %s) is no floor',
  async (status_code, { stub, fleet, expect }) => {
    stub.behave = () => of({ code: 'payload_too_large', status_code });
    expect(words(await fleet.asker().ask(queriesOf(3), OPTIONS))).toEqual(['permit', 'unavailable', 'permit']);
  },
);

test.concurrent.for(ITEMS)(
  'an item with $name, and its neighbours',
  TIMED,
  async ({ reply, kind, calls, kept, failures }, { server, stub, fleet, expect }) => {
    stub.behave = () => reply;
    expect(words(await fleet.asker().ask(queriesOf(3), OPTIONS))).toEqual(['permit', kind, 'permit']);
    expect(stub.calls.length).toBe(calls);
    await expect.poll(async () => (await readUpstreams(server.redis))[0]?.inFlight).toBe(0);
    expect(await keptNow(server)).toBe(kept);
    expect((await readUpstreams(server.redis))[0]?.counters.failures).toBe(failures);
  },
);
