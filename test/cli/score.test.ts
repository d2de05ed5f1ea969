import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { score } from '../../src/cli/verbs/score.ts';
import { type Simulator, startSimulator } from '../../src/simulator/server.ts';

let dir: string;
let simulator: Simulator;

beforeEach(async () => {
  dir = mkdtempSync(path.join(tmpdir(), 'score-test-'));
  simulator = await startSimulator();
  vi.stubEnv('AMBERTRACE_API_KEY', 'at_test_key_0123');
  vi.stubEnv('AMBERTRACE_BASE_URL', simulator.baseUrl);
});
afterEach(async () => {
  await simulator.close();
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true });
});

function file(name: string, text: string): string {
  writeFileSync(path.join(dir, name), text);
  return path.join(dir, name);
}
const config = (platform = 1) => file('config.yaml', `domain:\n  platform_id: ${platform}\n`);

function line(answer: string, age: number, more: object = {}): string {
  const facts = { age, annual_income: 20000, resident: true, active_grant: false, ...more };
  const completion = `<decision>${JSON.stringify({ classification: answer, facts })}</decision>`;
  return JSON.stringify({ prompt: 'p', completion, metadata: { gold: 'permit' } });
}

async function run(configFile: string, input: string) {
  let out = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += String(text);
    return true;
  });
  try {
    const exit = await score({ config: configFile, input });
    return {
      exit,
      rows: out
        .trim()
        .split('\n')
        .map((row) => JSON.parse(row) as Record<string, unknown>),
    };
  } finally {
    write.mockRestore();
  }
}

test('one row an item, in order: right above wrong above refused above unreadable', async () => {
  const items = [
    line('permit', 30),
    line('deny', 30),
    line('permit', 30, { weather: 'fog' }),
    '{"prompt": "p", "completion": 7}',
    line('permit', 30),
  ];
  const { exit, rows } = await run(config(), file('items.jsonl', `${items.join('\n')}\n\n`));
  expect(exit).toBe(0);
  expect(rows.map((row) => [row.index, row.status, row.cached])).toEqual([
    [0, 'completed', false],
    [1, 'completed', true],
    [2, 'completed', false],
    [3, 'completed', false],
    [4, 'completed', true],
  ]);
  const rewards = rows.map((row) => row.reward as number);
  expect(rewards[0]).toBe(rewards[4]);
  expect(rewards[0]).toBeGreaterThan(rewards[2] as number);
  expect(rewards[3]).toBe(-1);
  expect(rows[0]).toMatchObject({
    report: { proof_checked: true, decision: 'permit' },
    cache_key: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test('a broken line is refused with its file and line before anything is asked', async () => {
  for (const [bad, why] of [
    ['{"prompt": ', 'JSON'],
    ['[1]', 'object'],
    ['{"prompt": "p"}', 'completion'],
    ['{"prompt": "p", "completion": "c", "metadata": 3}', 'metadata'],
  ] as const) {
    const input = file('items.jsonl', `${line('permit', 30)}\n\n${bad}\n`);
    await expect(run(config(), input)).rejects.toMatchObject({
      exit: 2,
      message: expect.stringMatching(new RegExp(`items.jsonl:3.*${why}`)),
    });
  }
  expect(simulator.calls.batch).toBe(0);
});

test('without a key nothing is asked, and the variable is named', async () => {
  vi.stubEnv('AMBERTRACE_API_KEY', '');
  const input = file('items.jsonl', line('permit', 30));
  await expect(run(config(), input)).rejects.toMatchObject({
    exit: 3,
    message: expect.stringContaining('AMBERTRACE_API_KEY'),
  });
});

test('a platform or a key that is refused ends the command with the reason', async () => {
  const input = file('items.jsonl', line('permit', 30));
  await expect(run(config(99), input)).rejects.toMatchObject({
    exit: 2,
    message: expect.stringContaining('no such platform'),
  });
  vi.stubEnv('AMBERTRACE_API_KEY', 'wrong_key_value');
  await expect(run(config(), input)).rejects.toMatchObject({
    exit: 2,
    message: expect.stringContaining('unauthorized'),
  });
});

test('a config is refused with every problem', async () => {
  const broken = file('broken.yaml', 'domain:\n  platform_id: x\n  colour: 1\nreward:\n  clip: [2, 1]\n');
  const refused = run(broken, file('items.jsonl', line('permit', 30)));
  await expect(refused).rejects.toMatchObject({
    exit: 2,
    message: expect.stringMatching(/platform_id.*colour.*clip/s),
  });
});
