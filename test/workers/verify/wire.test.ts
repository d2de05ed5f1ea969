import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/shared/json/json.ts';
import type { ValueMap } from '../../../src/shared/json/value.ts';
import { itemMeanings, meaningOf, retryAfterMs } from '../../../src/workers/verify/wire.ts';

const NOW = Date.UTC(2026, 0, 1);

function meaning(status: number, body: unknown, options: { batch?: boolean; retryAfter?: string } = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return meaningOf({ status, body: text, retryAfter: options.retryAfter ?? null }, options.batch ?? false, NOW);
}
const kind = (status: number, body: unknown, options: { batch?: boolean } = {}) => meaning(status, body, options).kind;
const error = (code: string, more: object = {}) => ({ ok: false, error: { code, message: 'm', ...more } });
const HTML = '<html>no healthy instance</html>';

describe('an answer about the completion', () => {
  test('200 with the fields asked for is a verdict, certified or not', () => {
    expect(kind(200, { ok: true, data: { decision: 'permit', proof_checked: true } })).toBe('verdict');
    expect(kind(200, { ok: true, data: { decision: null, proof_checked: null } })).toBe('verdict');
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
    expect(kind(400, error('invalid_facts'))).toBe('denial');
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

  test('any other 4xx with the envelope is a request that is not understood', () => {
    expect(kind(415, error('unsupported'))).toBe('not_understood');
    expect(kind(422, error('validation_error', { details: [{ field: 'top_k', message: 'too big' }] }))).toBe(
      'not_understood',
    );
  });
});

describe('the items of a batch', () => {
  const items = (results: unknown[], count = results.length) =>
    itemMeanings(parseJson(JSON.stringify({ results })) as ValueMap, count).map((one) => one.kind);
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
      ]),
    ).toEqual(['infrastructure', 'verdict']);
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
    [{ code: 'something_new' }, 'infrastructure'],
    [{ message: 'no code' }, 'infrastructure'],
  ])('%j is %s', (e, expected) => expect(item(e)).toBe(expected));
});
