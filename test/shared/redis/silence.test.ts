import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRedis } from '../../../src/shared/redis/connect.ts';
import { tellSilence } from '../../../src/shared/redis/silence.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';
import { until } from '../../support/until.ts';

let server: TestRedis;
beforeEach(async () => {
  server = await startRedis();
});
afterEach(() => server.close());

describe('a Redis that stands still', () => {
  // A role waits for ever; a command's own connection gives each of its commands up after a while.
  it.each([
    ['a patient connection', {}],
    ['one whose commands have a deadline', { commandTimeout: 300 }],
  ])('is told of once on %s, with since when, and again when it answers', async (_, extra) => {
    const lines: { msg: string; since_s?: number }[] = [];
    const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const redis = openRedis(server.place, extra);
    await redis.ping();
    const silence = tellSilence(redis, 'the test’s', log);
    try {
      server.process.kill('SIGSTOP');
      await until('it is told', () => lines.length > 0);
      let turns = 0;
      const turning = setInterval(() => turns++, 5);
      await until('the process has time for others', () => turns >= 20);
      clearInterval(turning);
      expect(lines).toMatchObject([{ msg: expect.stringMatching(/^waiting for Redis/) }]);
      expect(lines[0]?.since_s).toBeGreaterThanOrEqual(2);
      server.process.kill('SIGCONT');
      await until('it answers', () => lines.some((line) => line.msg === 'Redis answers again'));
      expect(lines).toHaveLength(2);
    } finally {
      server.process.kill('SIGCONT');
      silence.stop();
      redis.disconnect();
    }
  });
});
