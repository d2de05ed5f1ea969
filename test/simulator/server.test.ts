import { readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { parseRulebook } from '../../src/simulator/rulebook.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts';

const open: Simulator[] = [];
afterEach(async () => {
  for (const simulator of open.splice(0)) await simulator.close();
});

async function start(options: SimulatorOptions = {}): Promise<Simulator> {
  const simulator = await startSimulator(options);
  open.push(simulator);
  return simulator;
}

/** The wire's JSON as far as these tests look into it. */
interface Rule {
  rule_name: string;
  fired: boolean;
}
interface Data {
  decision: string;
  explanation: {
    schema_version: number;
    certified_fact_summary: object;
    decision: { deciding_rules: { rule: string }[] };
    symbolic_trace: { rules: Rule[] };
    proof: { firings: { rule: string }[] };
  };
  results: { index: number; status: string; data: Data }[];
}
interface Body {
  ok: boolean;
  data: Data;
  error: { code: string; rejected_facts: { field: string }[]; missing_atoms: string[] };
}

const NOTHING = {} as Body;

async function post(simulator: Simulator, path: string, body: unknown, key = 'at_test_key') {
  const response = await fetch(`${simulator.baseUrl}/api/v1/platforms/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: text.startsWith('{') ? (JSON.parse(text) as Body) : NOTHING,
  };
}

const applicant = { age: 30, annual_income: 20000, resident: true, active_grant: false };
const ask = (facts: unknown) => ({ query: 'q', facts, explain: true });

test('health answers without a key', async () => {
  const simulator = await start();
  expect((await fetch(`${simulator.baseUrl}/ambertrace/health`)).status).toBe(200);
});

test('every air track gets the decision of the policy', async () => {
  const simulator = await start({ rulebooks: ['air-track'] });
  const rows = readFileSync(new URL('../fixtures/air-track-decisions.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  const cases = rows.map((row) => JSON.parse(row) as { facts: object; decision: string | null });
  const answered: (string | null)[] = [];
  for (let at = 0; at < cases.length; at += 50) {
    const batch = await post(simulator, '2/query-batch', {
      queries: cases.slice(at, at + 50).map((one) => ask(one.facts)),
    });
    for (const item of batch.json.data.results) answered.push(item.status === 'ok' ? item.data.decision : null);
  }
  expect(answered).toEqual(cases.map((one) => one.decision));
});

test('an answer is filled like the real one, and says that nothing was proved', async () => {
  const { json, headers } = await post(await start(), '1/query', ask(applicant));
  expect(json.data).toMatchObject({
    decision: 'permit',
    outcome: 'permit',
    permitted: true,
    status: 'decided',
    proof_checked: true,
    simulated: true,
  });
  expect(json.data.explanation.certified_fact_summary).toEqual({
    accepted: 4,
    emitted: 4,
    rejected: 0,
    witness_invalid: 0,
  });
  expect(json.data.explanation.schema_version).toBe(1);
  expect(json.data.explanation.decision.deciding_rules[0]?.rule).toBe('Decide permit otherwise');
  const fired = json.data.explanation.symbolic_trace.rules.filter((rule) => rule.fired).map((rule) => rule.rule_name);
  expect(fired).toEqual(json.data.explanation.proof.firings.map((firing) => firing.rule));
  expect(headers.get('x-ambertrace-simulated')).toBe('certifies nothing');
});

test('the thresholds of a grant are where the policy says', async () => {
  const simulator = await start();
  const decide = async (change: object) =>
    (await post(simulator, '1/query', ask({ ...applicant, ...change }))).json.data.decision;
  expect(await decide({ age: 18, annual_income: 30000 })).toBe('permit');
  expect(await decide({ age: 17 })).toBe('deny');
  expect(await decide({ annual_income: 30001 })).toBe('deny');
  expect(await decide({ resident: false })).toBe('deny');
  expect(await decide({ active_grant: true })).toBe('deny');
});

test('an undeclared field, a value outside its domain, a weak or a missing fact is refused by name', async () => {
  const simulator = await start();
  const refusal = async (facts: object) => (await post(simulator, '1/query', ask(facts))).json.error;
  expect((await refusal({ ...applicant, weather: 'fog' })).rejected_facts).toMatchObject([
    { field: 'weather', value: 'fog' },
  ]);
  expect((await refusal({ ...applicant, age: -1 })).rejected_facts[0]?.field).toBe('age');
  expect((await refusal({ ...applicant, age: { value: 30, confidence: 0.1 } })).rejected_facts[0]?.field).toBe('age');
  expect(await refusal({ age: 30 })).toMatchObject({
    code: 'service_unavailable',
    missing_atoms: ['annual_income', 'resident', 'active_grant'],
  });
});

test('a projection keeps the named fields and the anchors', async () => {
  const simulator = await start();
  const { json } = await post(simulator, '1/query', { ...ask(applicant), projection: ['decision'] });
  expect(Object.keys(json.data).sort()).toEqual(['decision', 'platform_id', 'query', 'simulated']);
  const batch = await post(simulator, '1/query-batch', {
    queries: [ask(applicant), { ...ask(applicant), projection: ['answer'] }],
    projection: ['decision'],
  });
  expect(batch.json.data.results.map((item) => [item.index, 'decision' in item.data, 'answer' in item.data])).toEqual([
    [0, true, false],
    [1, false, true],
  ]);
});

test('a platform that cannot decide says so before it projects, in a single answer as in a batch', async () => {
  const simulator = await start({ misbehave: '{"fail": [{"kind": "unavailable"}]}' });
  const undecided = { proof_checked: null, decision: null, explanation: null };
  expect((await post(simulator, '1/query', ask(applicant))).json.data).toMatchObject({
    ...undecided,
    status: 'unavailable',
  });
  const projection = ['proof_checked', 'decision', 'explanation'];
  const single = await post(simulator, '1/query', { ...ask(applicant), projection });
  const batch = await post(simulator, '1/query-batch', { queries: [ask(applicant)], projection });
  for (const data of [single.json.data, batch.json.data.results[0]?.data]) {
    expect(data).toMatchObject(undecided);
    expect(data).not.toHaveProperty('status');
  }
});

test('one answer of a batch is undecided, the others are not', async () => {
  const simulator = await start({ misbehave: '{"fail": [{"kind": "unavailable", "item": 1}]}' });
  const { json } = await post(simulator, '1/query-batch', {
    queries: [ask(applicant), ask(applicant), ask(applicant)],
  });
  expect(json.data.results.map((item) => item.data.decision)).toEqual(['permit', null, 'permit']);
});

test('a wrong key is 401, an unknown platform 404, a broken item fails alone', async () => {
  const simulator = await start();
  expect((await post(simulator, '1/query', ask(applicant), 'sk_x')).json.error.code).toBe('unauthorized');
  expect(await post(simulator, '9/query', ask(applicant))).toMatchObject({
    status: 404,
    json: { ok: false, error: { code: 'not_found' } },
  });
  const { json } = await post(simulator, '1/query-batch', { queries: [ask(applicant), 7, ask({})] });
  expect(json.data.results.map((item) => item.status)).toEqual(['ok', 'error', 'error']);
});

test('it misbehaves as told: the first two calls, then no more', async () => {
  const simulator = await start({
    misbehave: '{"fail": [{"kind": "rate_limit", "first": 1, "retry_after_s": 3}, {"kind": "proxy_503", "first": 1}]}',
  });
  const limited = await post(simulator, '1/query', ask(applicant));
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '3']);
  const proxy = await post(simulator, '1/query', ask(applicant));
  expect([proxy.status, proxy.text]).toEqual([503, expect.stringContaining('<html>')]);
  expect((await post(simulator, '1/query', ask(applicant))).status).toBe(200);
});

test('a rulebook is checked before it serves', () => {
  const book = {
    name: 'x',
    platform_id: 3,
    fields: [{ name: 'a', type: 'bool' }],
    decisions: [{ decision: 'd', rule: 'r' }],
  };
  const parse = (change: object) => parseRulebook(JSON.stringify({ ...book, ...change }), 'x.json');
  expect(parse({}).name).toBe('x');
  expect(() => parse({ colour: 1 })).toThrow(/colour/);
  expect(() => parse({ rules: [{ name: 'r', type: 'deny', when: { field: 'b', op: 'eq', value: true } }] })).toThrow(
    /reads 'b'/,
  );
  expect(() =>
    parse({ decisions: [{ decision: 'd', rule: 'r', when: { field: 'a', op: 'eq', value: true } }] }),
  ).toThrow(/last/);
});

test('unusable input is refused in one line', async () => {
  await expect(startSimulator({ rulebooks: ['no-such-rulebook'] })).rejects.toMatchObject({
    code: 'rulebook_unreadable',
    exit: 2,
  });
  await expect(startSimulator({ misbehave: '{"fail": [{"kind": "tantrum"}]}' })).rejects.toMatchObject({
    code: 'misbehave_invalid',
    exit: 2,
  });
  const simulator = await start();
  await expect(startSimulator({ port: Number(new URL(simulator.baseUrl).port) })).rejects.toMatchObject({
    code: 'port_unusable',
    exit: 3,
  });
});
