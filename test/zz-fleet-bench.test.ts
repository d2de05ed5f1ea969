import { test } from 'vitest';
import { VerifierClient } from '../src/workers/verify/client.ts';
import { makeFleet, OPTIONS, queriesOf } from './support/fleet.ts';
import { startRedis } from './support/redis-server.ts';
import { startStub } from './support/stub-platform.ts';

test('256', async () => {
  const server = await startRedis();
  const stub = await startStub(() => ({ delayMs: 50 }));
  const fleet = makeFleet(server, stub.baseUrl, { concurrency: 16 });
  const asker = fleet.asker();
  const client = new VerifierClient({ baseUrl: stub.baseUrl, platformId: 1n, apiKey: 'at_x', concurrency: 16 });
  const rows: string[] = [];
  for (let i = 0; i < 12; i++) {
    const t0 = performance.now();
    const c0 = process.cpuUsage();
    await asker.ask(queriesOf(256, i * 1000), OPTIONS);
    const t1 = performance.now();
    await new Promise((r) => setTimeout(r, 60));
    const c = process.cpuUsage(c0);
    const t2 = performance.now();
    await client.ask(queriesOf(256, 500000 + i * 1000));
    rows.push(
      `fleet ${(t1 - t0).toFixed(1)} ms (cpu ${((c.user + c.system) / 1000).toFixed(0)})  per-process client ${(performance.now() - t2).toFixed(1)} ms`,
    );
    await new Promise((r) => setTimeout(r, 60));
  }
  // single asks, one at a time
  const lat: number[] = [];
  for (let i = 0; i < 20; i++) {
    const t = performance.now();
    await asker.ask(queriesOf(1, 10_000_000 + i), OPTIONS);
    lat.push(performance.now() - t);
  }
  lat.sort((a, b) => a - b);
  console.log(rows.join('\n'), '\nsingle ask p50', lat[10]?.toFixed(1));
  await fleet.close();
  client.close();
  await stub.close();
  await server.close();
});
