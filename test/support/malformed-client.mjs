// One process that asks a malformed platform, so that its memory is its own. stdin: JSON {baseUrl, from, cases, warm};
// `cases`: for each the number of its queries; after `warm` of them memory is measured first. stdout: a JSON line a case [number, outcomes, kept], then {rss: {...}}.

import { text } from 'node:stream/consumers';
import { parseJson } from '../../dist/shared/json/json.js';
import { resolveVerifier } from '../../dist/shared/spec/verifier-config.js';
import { VerifierClient } from '../../dist/workers/verify/client.js';
import { verifyCompletions } from '../../dist/workers/verify/verify.js';

const { baseUrl, from, cases, warm } = JSON.parse(await text(process.stdin));
const domain = { platform_id: 1, parser: 'json_block', query_template: '{facts}' };
const { config } = resolveVerifier(parseJson(JSON.stringify({ domain })), null);
const MB = 1024 * 1024;
const AT_ONCE = 24;

async function one(number, count) {
  const client = new VerifierClient({
    ...{ baseUrl, platformId: 1n, apiKey: 'at_malformed_0123456789', concurrency: 2, callTimeoutMs: 8_000 },
    ...{ tries: 1, patienceMs: 0, sleep: async () => {} },
  });
  const items = Array.from({ length: count }, (_, item) => ({
    prompt: 'p',
    completion: `<decision>{"classification": "permit", "facts": {"age": "case ${number} item ${item}"}}</decision>`,
    metadata: parseJson('{"gold": "permit"}'),
  }));
  const cache = new Map();
  try {
    const results = await verifyCompletions(config, items, { ask: (queries) => client.ask(queries), cache });
    const told = results.map((r) => (r.status === 'completed' ? r.reward : r.cause));
    return [number, told, [...cache.values()].map((answer) => answer.kind)];
  } catch (error) {
    return [number, [`threw ${error}`], []];
  } finally {
    client.close();
  }
}

let next = 0;
let before = 0;
let peak = 0;
const rss = () => process.memoryUsage().rss / MB;
const sampler = setInterval(() => {
  peak = Math.max(peak, rss());
}, 20);
async function worker() {
  while (next < cases.length) {
    const at = next++;
    const line = JSON.stringify(await one(from + at, cases[at]));
    if (!process.stdout.write(`${line}\n`)) await new Promise((resolve) => process.stdout.once('drain', resolve));
    if (at === warm) {
      globalThis.gc();
      before = rss();
    }
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, worker));
clearInterval(sampler);
globalThis.gc();
process.stdout.write(`${JSON.stringify({ rss: { before, after: rss(), peak } })}\n`);
