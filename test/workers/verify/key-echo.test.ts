// A platform that echoes the verifier's key, spelled in JSON escapes, wherever an answer has room for text: none of
// it gets any further, in the answers, in the log or in Redis.

import type { Redis } from 'ioredis';

import { dumpJson } from '../../../src/shared/json/json.ts';
import type { Value } from '../../../src/shared/json/value.ts';
import { VerifierClient } from '../../../src/workers/verify/client.ts';
import { reportFromDenial, reportFromResult, reportToValue } from '../../../src/workers/verify/report.ts';
import { API_KEY, fleetOfEach, OPTIONS, queriesOf } from '../../support/fleet.ts';
import { permitted, type StubReply } from '../../support/stub-platform.ts';

const test = fleetOfEach({ tries: 2, backoffMs: 10 });

const ESCAPED = [...API_KEY].map((c, i) => (i % 3 ? c : `\\u00${c.charCodeAt(0).toString(16)}`)).join('');
/** JSON with the key in it, spelled so that only a parser finds it. */
const spelled = (body: object): string => JSON.stringify(body).replaceAll('KEY', ESCAPED);

const data = {
  ...permitted('KEY'),
  answer: 'it is KEY',
  decision: 'KEY',
  proof_summary: 'by KEY',
  explanation: {
    schema_version: 1,
    certified_fact_summary: { KEY: 1 },
    symbolic_trace: { rules: [{ rule_name: 'KEY', fired: true, explanation: { KEY: ['KEY'] } }] },
    decision: { deciding_rules: [{ KEY: 'KEY' }] },
  },
};
const error = {
  code: 'service_unavailable',
  message: 'refused to KEY',
  details: [{ field: 'KEY', message: 'KEY' }],
  rejected_facts: [{ field: 'KEY', value: { KEY: 'KEY' }, reasons: ['KEY', ['KEY']] }],
};
const whole = (status: number, code: string): StubReply => ({
  status,
  body: spelled({ ok: false, error: { ...error, rejected_facts: [], code } }),
});
const item = (one: object): StubReply => ({
  body: spelled({ ok: true, data: { platform_id: 1, results: [{ index: 0, ...one }] } }),
});

const ECHOES: [string, StubReply, string][] = [
  ['200', item({ status: 'ok', data }), 'verdict'],
  ['503 that refuses', { status: 503, body: spelled({ ok: false, error }) }, 'denial'],
  ['400 about a fact', whole(400, 'validation_error'), 'denial'],
  ['401', whole(401, 'KEY'), 'misconfigured'],
  ['418', whole(418, 'KEY'), 'unavailable'],
  ['500', whole(500, 'KEY'), 'unavailable'],
  ['an item that is refused', item({ status: 'error', error }), 'denial'],
  ['an item that fails', item({ status: 'error', error: { code: 'KEY', message: 'KEY' } }), 'unavailable'],
  ['an item that is forbidden', item({ status: 'error', error: { code: 'KEY', status_code: 403 } }), 'misconfigured'],
];

test.concurrent.for(ECHOES)('%s', async ([_, reply, kind], { server, stub, fleet, expect }) => {
  stub.behave = () => reply;
  const client = new VerifierClient({
    baseUrl: stub.baseUrl,
    platformId: 1n,
    apiKey: API_KEY,
    concurrency: 1,
    tries: 2,
    sleep: async () => undefined,
  });
  const answers = [...(await client.ask(queriesOf(1))), ...(await fleet.asker().ask(queriesOf(1), OPTIONS))];
  client.close();
  expect(JSON.parse(spelled({ a: 'KEY' }))).toEqual({ a: API_KEY });
  expect(answers.map((one) => one.kind)).toEqual([kind, kind]);
  for (const answer of answers) {
    const said =
      answer.kind === 'verdict'
        ? [answer.data, reportToValue(reportFromResult(answer.data))]
        : answer.kind === 'denial'
          ? [answer.denial.message, answer.denial.rejectedFacts, reportToValue(reportFromDenial(answer.denial))]
          : [answer.detail];
    expect(dumpJson(said as Value)).toContain('[redacted]');
    expect(dumpJson(said as Value)).not.toContain(API_KEY);
  }
  expect(JSON.stringify(fleet.log)).not.toContain(API_KEY);
  const kept = await everything(server.redis);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.filter((text) => text.includes(API_KEY))).toEqual([]);
});

async function everything(redis: Redis): Promise<string[]> {
  const keys = await redis.keys('*');
  const texts = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key);
      if (type === 'hash') return JSON.stringify(await redis.hgetall(key));
      if (type === 'zset') return JSON.stringify(await redis.zrange(key, '0', '-1'));
      if (type === 'list') return JSON.stringify(await redis.lrange(key, 0, -1));
      return type === 'string' ? ((await redis.get(key)) ?? '') : '';
    }),
  );
  return [...keys, ...texts];
}
