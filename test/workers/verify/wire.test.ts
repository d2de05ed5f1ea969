import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/shared/json/json.ts';
import type { ValueMap } from '../../../src/shared/json/value.ts';
import { redactor } from '../../../src/workers/verify/redact.ts';
import { itemMeanings, meaningOf, retryAfterMs } from '../../../src/workers/verify/wire.ts';

const NOW = Date.UTC(2026, 0, 1);

interface Options {
  batch?: boolean;
  count?: number;
  retryAfter?: string;
}
function meaning(status: number, body: unknown, { batch = false, count = 1, retryAfter }: Options = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const asked = { batch, count, platformId: 7n, redact: redactor('at_key') };
  return meaningOf({ status, body: text, retryAfter: retryAfter ?? null }, asked, NOW);
}
const kind = (status: number, body: unknown, options: Options = {}) => meaning(status, body, options).kind;
const error = (code: string, more: object = {}) => ({ ok: false, error: { code, message: 'm', ...more } });
const HTML = '<html>no healthy instance</html>';

describe('an answer about the completion', () => {
  test('200 with the fields asked for is a verdict, certified or not', () => {
    expect(kind(200, { ok: true, data: { decision: 'permit', proof_checked: true } })).toBe('verdict');
    expect(kind(200, { ok: true, data: { decision: 'permit', proof_checked: null } })).toBe('verdict');
    expect(kind(200, { ok: true, data: { decision: null, proof_checked: false } })).toBe('verdict');
    const explanation = { schema_version: 1 };
    expect(kind(200, { ok: true, data: { decision: null, proof_checked: null, explanation } })).toBe('verdict');
    expect(kind(200, { ok: true, data: { decision: 'permit', platform_id: 7 } })).toBe('verdict');
  });

  test('a refusal to certify is a denial with its rejected facts, wherever they stand', () => {
    const rejected_facts = [{ field: 'iff_mode', value: 'x', reasons: ['r'] }];
    for (const body of [
      error('service_unavailable', { rejected_facts }),
      { ...error('service_unavailable'), rejected_facts },
    ]) {
      const said = meaning(503, body);
      expect(said.kind === 'denial' && said.denial.rejectedFacts).toEqual([
        new Map<string, unknown>([
          ['field', 'iff_mode'],
          ['value', 'x'],
          ['reasons', ['r']],
        ]),
      ]);
    }
  });

  test('a refusal that echoes facts as deep as completions are read is a denial all the same', () => {
    const deep = `${'['.repeat(890)}1${']'.repeat(890)}`;
    const body = `{"ok": false, "error": {"code": "service_unavailable", "message": "m", "rejected_facts": [{"field": "a", "value": ${deep}, "reasons": []}]}}`;
    expect(kind(503, body)).toBe('denial');
    expect(kind(200, `{"ok": true, "data": {"decision": "permit", "proof_checked": true, "answer": ${deep}}}`)).toBe(
      'verdict',
    );
  });

  test('an older platform names the facts in its details', () => {
    const said = meaning(
      503,
      error('service_unavailable', { details: [{ field: 'a', message: 'bad' }, { field: '' }] }),
    );
    expect(said).toEqual({ kind: 'denial', denial: { message: 'm (a: bad)', rejectedFacts: ['a'] } });
  });

  test('a refusal without diagnostics, or with missing atoms under another code, is a denial too', () => {
    expect(kind(503, error('service_unavailable'))).toBe('denial');
    expect(kind(500, error('internal_error', { missing_atoms: ['x'] }))).toBe('denial');
    expect(kind(422, error('validation_error', { details: [{ field: 'age', message: 'too old' }] }))).toBe('denial');
    for (const field of ['facts.age', 'queries.0.facts.age', 'body.facts[age]', 'relations.links'])
      expect(kind(400, error('invalid', { details: [{ field, message: 'bad' }] }))).toBe('denial');
  });
});

describe('an answer about the infrastructure', () => {
  test.each([
    ['a proxy without the envelope', 503, HTML],
    ['an empty 502', 502, ''],
    ['a 200 that is not JSON', 200, HTML],
    ['a 200 that is a list', 200, '[]'],
    ['a 200 without data', 200, { ok: true }],
    ['a 200 that says it is not ok', 200, { ok: false, data: { decision: 'x' } }],
    ['a 200 that does not say it is ok', 200, { data: { decision: 'x' } }],
    ['a 200 whose ok is a text', 200, { ok: 'true', data: { decision: 'x' } }],
    ['a 200 with an error beside its data', 200, { ok: true, data: { decision: 'x' }, error: { code: 'y' } }],
    ['a 200 whose data is a list', 200, { ok: true, data: [{ decision: 'x' }] }],
    ['a proof_checked that is a text', 200, { ok: true, data: { decision: 'x', proof_checked: 'false' } }],
    ['a proof_checked that is a number', 200, { ok: true, data: { decision: 'x', proof_checked: 1 } }],
    ['an explanation that is a text', 200, { ok: true, data: { decision: 'x', explanation: 'because' } }],
    ['an answer of another platform', 200, { ok: true, data: { decision: 'x', platform_id: 8 } }],
    ['neither proof, decision nor explanation', 200, { ok: true, data: { decision: null, proof_checked: null } }],
    ['a refusal that does not say it is not ok', 503, { error: { code: 'service_unavailable' } }],
    ['a refusal that says it is ok', 503, { ok: true, error: { code: 'service_unavailable' } }],
    ['a gateway that carries a refusal', 502, error('service_unavailable', { rejected_facts: ['x'] })],
    ['a gateway timeout that carries a refusal', 504, error('service_unavailable')],
    ['a code that only sounds like facts', 500, error('artifact_store_down')],
    ['data with none of the fields asked for', 200, { ok: true, data: { hello: 1 } }],
    ['a number that is not finite', 200, '{"ok": true, "data": {"proof_checked": true, "answer": NaN}}'],
    ['a number beyond a double', 200, '{"ok": true, "data": {"proof_checked": true, "answer": 1e999}}'],
    ['a platform that cannot decide now', 200, { ok: true, data: { status: 'unavailable', proof_checked: null } }],
    ['an internal error', 500, error('internal_error')],
    ['a backend that does not answer', 503, error('backend_unavailable')],
    ['a conflict', 409, error('conflict')],
    ['a request timeout', 408, error('timeout')],
    ['a redirect', 302, ''],
    ['a 400 of a proxy', 400, HTML],
    ['a JSON object that is not the envelope', 503, { message: 'Service Unavailable' }],
  ])('%s', (_, status, body) => expect(kind(status, body)).toBe('infrastructure'));
});

describe('an answer about limits, configuration or the request', () => {
  test('429 is a rate limit with its wait, whatever else it says', () => {
    expect(meaning(429, HTML, { retryAfter: '2' })).toMatchObject({ kind: 'rate_limited', retryAfterMs: 2000 });
    expect(kind(429, error('service_unavailable', { rejected_facts: ['x'] }))).toBe('rate_limited');
    expect(retryAfterMs(new Date(NOW + 5000).toUTCString(), NOW)).toBe(5000);
    expect(retryAfterMs('soon', NOW)).toBeNull();
  });

  test.each([401, 402, 403, 404])('%i is a wrong configuration', (status) => {
    expect(kind(status, error('x'))).toBe('misconfigured');
    expect(kind(status, HTML)).toBe('misconfigured');
  });

  test('404 on the batch path means single calls, unless it speaks of the platform', () => {
    expect(kind(404, 'Not Found', { batch: true })).toBe('unsupported');
    expect(
      meaning(404, { ok: false, error: { code: 'not_found', message: 'Platform 9 not found' } }, { batch: true }).kind,
    ).toBe('misconfigured');
  });

  test('413, and 422 about the number of queries, is a batch that is too big', () => {
    expect(kind(413, '', { batch: true })).toBe('too_big');
    expect(
      kind(422, error('validation_error', { details: [{ field: 'queries', message: 'at most 10' }] }), { batch: true }),
    ).toBe('too_big');
    expect(
      meaning(422, { ok: false, error: { code: 'validation_error', message: 'at most 10 queries' } }, { batch: true })
        .kind,
    ).toBe('too_big');
  });

  test.each([400, 422, 500, 502, 503])('%i that refuses several queries as one is about none of them', (status) => {
    const refusal = error('service_unavailable', { rejected_facts: ['x'] });
    expect(kind(status, refusal, { batch: true, count: 2 })).toBe('apart');
    expect(kind(status, refusal, { batch: true, count: 1 })).toBe(status === 502 ? 'infrastructure' : 'denial');
  });

  test('a wait that is no time is none, and nobody waits for more than five minutes at a word', () => {
    for (const none of ['-5', '1e9', 'NaN', 'Infinity', '']) expect(retryAfterMs(none, NOW)).toBeNull();
    for (const long of ['9'.repeat(400), '86400', new Date(NOW + 9e9).toUTCString()])
      expect(retryAfterMs(long, NOW)).toBe(300_000);
    expect(retryAfterMs(new Date(NOW - 5000).toUTCString(), NOW)).toBe(0);
  });

  test('any other 4xx with the envelope is a request that is not understood', () => {
    expect(kind(415, error('unsupported'))).toBe('not_understood');
    for (const field of ['top_k', 'body.top_k', 'queries.0.top_k', 'queries[0].predictions.facts_of'])
      expect(kind(422, error('validation_error', { details: [{ field, message: 'too big' }] }))).toBe('not_understood');
    expect(kind(422, error('artifact_missing'))).toBe('not_understood');
    expect(kind(400, error('invalid', { details: [{ field: 'artifacts.age' }] }))).toBe('not_understood');
  });
});

describe('the items of a batch', () => {
  const items = (results: unknown[], count = results.length) =>
    itemMeanings(parseJson(JSON.stringify({ results })) as ValueMap, count, 7n).map((one) => one.kind);
  const item = (e: object) => items([{ index: 0, status: 'error', error: e }])[0];

  test('are matched by their index; what is missing, double or out of range is no answer', () => {
    const ok = { status: 'ok', data: { proof_checked: true } };
    expect(
      items([
        { index: 1, ...ok },
        { index: 0, status: 'error', error: { code: 'validation_error' } },
      ]),
    ).toEqual(['denial', 'verdict']);
    expect(items([{ index: 0, ...ok }, { index: 0, ...ok }, { index: 7, ...ok }, ok, null], 2)).toEqual([
      'infrastructure',
      'infrastructure',
    ]);
  });

  test('a bad item spoils nobody else', () => {
    expect(
      items([
        { index: 0, status: 'ok', data: null },
        { index: 1, status: 'ok', data: { decision: 'x' } },
        { index: 2, status: 'ok', data: { decision: 'x' }, error: { code: 'service_unavailable' } },
        { index: 3, status: 'ok', data: { decision: 'x', platform_id: 8 } },
      ]),
    ).toEqual(['infrastructure', 'verdict', 'infrastructure', 'infrastructure']);
  });

  test.each([
    [{ code: 'service_unavailable' }, 'denial'],
    [{ code: 'certification_failed' }, 'denial'],
    [{ code: 'anything', rejected_facts: ['x'] }, 'denial'],
    [{ code: 'rate_limit_exceeded' }, 'rate_limited'],
    [{ code: 'too_many_requests' }, 'rate_limited'],
    [{ code: 'x', status_code: 429 }, 'rate_limited'],
    [{ code: 'unauthorized' }, 'misconfigured'],
    [{ code: 'capability_disabled' }, 'misconfigured'],
    [{ code: 'service_unavailable', status_code: 401 }, 'misconfigured'],
    [{ code: 'internal_error' }, 'infrastructure'],
    [{ code: 'manufacturing_fault' }, 'infrastructure'],
    [{ code: 'service_unavailable', status_code: 504 }, 'infrastructure'],
    [{ code: 'something_new' }, 'infrastructure'],
    [{ message: 'no code' }, 'infrastructure'],
  ])('%j is %s', (e, expected) => expect(item(e)).toBe(expected));
});
