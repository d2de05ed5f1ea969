import { test } from 'vitest';
import { makeFleet, OPTIONS, queriesOf } from './support/fleet.ts';
import { startRedis } from './support/redis-server.ts';
import { startStub } from './support/stub-platform.ts';

test('256', async () => {
  const server = await startRedis();
  let t0 = 0;
  let marks: string[] = [];
  const mark = (s: string) => marks.push(`${s} ${(performance.now() - t0).toFixed(1)}`);
  const stub = await startStub((c) => {
    mark(`call${c.queries.length}`);
    return { delayMs: 50 };
  });
  const fleet = makeFleet(server, stub.baseUrl, { concurrency: 16 });
  const asker = fleet.asker();
  const ex = (asker as any).exchange;
  const desk = (asker as any).desk;
  const oj = ex.join.bind(ex);
  ex.join = async (...a: any[]) => {
    mark('join>');
    const r = await oj(...a);
    mark('join<');
    return r;
  };
  const os = ex.take.bind(ex);
  ex.take = async (...a: any[]) => {
    mark('take>');
    const r = await os(...a);
    mark('take<');
    return r;
  };
  const oc = desk.caller.call.bind(desk.caller);
  desk.caller.call = async (...a: any[]) => {
    mark('http>');
    const r = await oc(...a);
    mark('http<');
    return r;
  };
  for (let i = 0; i < 10; i++) {
    marks = [];
    t0 = performance.now();
    await asker.ask(queriesOf(256, i * 1000), OPTIONS);
    mark('done');
    if (i > 6) console.log(marks.join('  '));
    await new Promise((r) => setTimeout(r, 60));
  }
  console.log(
    (await server.redis.info('commandstats'))
      .split('\n')
      .filter((l) => /eval|calls=\d{3}/.test(l))
      .join('\n'),
    'done',
  );
  await fleet.close();
  await stub.close();
  await server.close();
});
