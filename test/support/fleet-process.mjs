// One process of a fleet, for tests that are about processes: connects, says `ready`, and asks when a line comes in.
// argv: JSON {socket, baseUrl, apiKey, limits, options}; stdin: lines {from, count}; stdout: `ready`, then a JSON line an ask.

import { createInterface } from 'node:readline';
import { openRedis } from '../../dist/shared/redis/connect.js';
import { FleetAsker } from '../../dist/workers/verify/fleet/asker.js';

const { socket, baseUrl, apiKey, limits, options } = JSON.parse(process.argv[2]);
const place = { options: { path: socket }, address: 'the test’s Redis', embedded: false };
const redis = openRedis(place);
const say = (message, detail) => process.stdout.write(`${JSON.stringify({ log: message, detail })}\n`);
const asker = new FleetAsker({
  redis,
  place,
  upstream: { baseUrl, platformId: 1n, apiKey },
  limits,
  log: { info: (f, m) => say(m, f.detail), warn: (f, m) => say(m, f.detail), debug: () => {} },
});
await redis.ping();
process.stdout.write('"ready"\n');
for await (const line of createInterface({ input: process.stdin })) {
  const { from, count } = JSON.parse(line);
  const queries = Array.from({ length: count }, (_, i) => ({
    query: `query ${from + i}`,
    facts: new Map([['age', 20n]]),
    relations: null,
    predictions: null,
  }));
  const answers = await asker.ask(queries, options);
  process.stdout.write(`${JSON.stringify({ kinds: answers.map((one) => one.kind) })}\n`);
}
await asker.close();
redis.disconnect();
