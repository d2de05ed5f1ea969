import { expect, it, type TestContext } from 'vitest';
import { readConfig } from '../../../src/shared/config.ts';
import { openLog } from '../../../src/shared/log.ts';
import { EngineWatch } from '../../../src/workers/rollout/engine-watch.ts';
import { until } from '../../support/until.ts';

const EVERY_MS = 20;

function setting({ onTestFinished }: TestContext) {
  const engine = { well: true, asked: 0 };
  const paused: string[] = [];
  const lines: string[] = [];
  const driver = {
    answers: async () => {
      engine.asked++;
      return engine.well;
    },
  };
  const log = openLog(readConfig({}), 'test', 'info', (line) => void lines.push(line));
  const watch = new EngineWatch(driver, log, async (run, reason) => void paused.push(`${run}: ${reason}`), EVERY_MS);
  onTestFinished(() => watch.close());
  return { engine, paused, lines, watch };
}

it('pauses the runs at work when the engine falls silent, says so, and says when it is back', async (context) => {
  const { engine, paused, lines, watch } = setting(context);
  const work = watch.begin('a');
  await until('the engine is asked', () => engine.asked > 1);
  expect(paused).toEqual([]);
  engine.well = false;
  await until('the run is paused', () => paused.length > 0);
  expect(paused[0]).toBe('a: the Docker engine does not answer');
  expect(lines.join('')).toMatch(/since_s.*waiting for the Docker engine/);
  engine.well = true;
  await until('it is said to be back', () => lines.some((line) => line.includes('answers again')));
  work.end();
});

it('remembers for an episode that the engine was silent meanwhile, and not for one that began later', async (context) => {
  const { engine, paused, lines, watch } = setting(context);
  const first = watch.begin('a');
  engine.well = false;
  await until('the run is paused', () => paused.length > 0);
  engine.well = true;
  await until('it is back', () => lines.some((line) => line.includes('answers again')));
  const second = watch.begin('a');
  expect([first.wasSilent(), second.wasSilent()]).toEqual([true, false]);
  first.end();
  second.end();
});

it('asks nothing of the engine for episodes that are over at once', async (context) => {
  const { engine, watch } = setting(context);
  for (let i = 0; i < 20; i++) {
    watch.begin('a').end();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(engine.asked).toBe(0);
});
