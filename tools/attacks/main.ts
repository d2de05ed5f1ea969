// `npm run attacks -- FILE`: every hostile action of an attacks file through the farm as its users have it (`./farm run`
// on the default sandbox), an honest task beside each. A line per attack; exit 1 if one does not hold, an honest task is
// harmed or the run does not verify, 2 for a file that holds no attacks, 3 where the farm cannot run.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { messageOf } from '../../src/shared/errors.ts';
import { type Attack, attackSchema, expectationFaults, type GroupOf, groupSchema, HONEST } from './attack.ts';

const RUN = 'attacks';

interface Answer {
  code: number | null;
  lines: string[];
  said: string;
}

/** The command in a data folder of its own; its stdout by lines. */
async function farm(data: string, args: string[]): Promise<Answer> {
  const env: NodeJS.ProcessEnv = { ...process.env, FARM_DATA: data, NO_COLOR: '1' };
  delete env.REDIS_URL;
  delete env.FARM_STORE;
  const child = spawn(path.resolve('farm'), args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-2_000);
  });
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, lines, said: said.trim() };
}

function readAttacks(file: string): Attack[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  const attacks = lines.flatMap((line, i) => {
    if (line.trim() === '') return [];
    try {
      return [attackSchema.parse(JSON.parse(line))];
    } catch (error) {
      throw new Error(`line ${i + 1} is no attack: ${messageOf(error)}`);
    }
  });
  if (attacks.length === 0) throw new Error('it holds no attacks');
  return attacks;
}

/** Alternating, so that each attack has honest neighbours on the same engine at the same time. */
function writeSpec(data: string, attacks: readonly Attack[]): string {
  const rows = attacks.flatMap((attack, n) => [
    { ...attack, id: `attack/${n}` },
    { id: `honest/${n}`, ...HONEST },
  ]);
  const jsonLines = (values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('');
  writeFileSync(`${data}/tasks.jsonl`, jsonLines(rows.map(({ id, env, config }) => ({ id, env, config, seed: 0 }))));
  writeFileSync(`${data}/completions.jsonl`, jsonLines(rows.map(({ id, actions }) => ({ task_id: id, actions }))));
  const spec = {
    name: 'attacks',
    seed: 0,
    group_size: 1,
    tasks: 'tasks.jsonl',
    policy: { kind: 'completions', path: 'completions.jsonl' },
    max_steps: 64,
    groups: { close: 'all', deadline_s: 900 },
    limits: { in_flight: 4 },
  };
  writeFileSync(`${data}/spec.yaml`, JSON.stringify(spec));
  return `${data}/spec.yaml`;
}

function report(attacks: readonly Attack[], groups: readonly GroupOf[]): number {
  const found = new Map(groups.map((group) => [group.task_id, group.members[0]]));
  let wrong = 0;
  for (const [n, attack] of attacks.entries()) {
    const faults = expectationFaults(attack, found.get(`attack/${n}`));
    const honest = found.get(`honest/${n}`);
    if (honest?.status !== 'completed' || honest.reward !== 1) faults.push('the honest task beside it was harmed');
    if (faults.length > 0) wrong += 1;
    const member = found.get(`attack/${n}`);
    const seen = member?.status === 'completed' ? [member.reward, ...member.diagnostics].join(' ') : member?.cause;
    process.stdout.write(`${faults.length === 0 ? 'holds' : 'FAILS'} ${attack.id}: ${[seen, ...faults].join('; ')}\n`);
  }
  return wrong;
}

async function main(): Promise<number> {
  const [file, ...more] = process.argv.slice(2);
  if (file === undefined || more.length > 0) {
    process.stderr.write('usage: npm run attacks -- FILE\n');
    return 2;
  }
  let attacks: Attack[];
  try {
    attacks = readAttacks(file);
  } catch (error) {
    process.stderr.write(`${file}: ${messageOf(error)}\n`);
    return 2;
  }
  const data = mkdtempSync(path.join(tmpdir(), 'rollout-farm-attacks-'));
  try {
    const run = await farm(data, ['run', writeSpec(data, attacks), '--run-id', RUN]);
    if (run.code !== 0) {
      process.stderr.write(`the run ended with ${run.code}: ${run.said}\n`);
      return run.code === 2 ? 2 : 3;
    }
    const results = await farm(data, ['results', RUN]);
    const groups = results.lines.map((line) => groupSchema.parse(JSON.parse(line)));
    const wrong = report(attacks, groups);
    const proof = await farm(data, ['verify-run', RUN]);
    if (proof.code !== 0) process.stdout.write(`FAILS verify-run: ${proof.said || proof.lines.join('; ')}\n`);
    process.stdout.write(`${attacks.length - wrong} of ${attacks.length} attacks hold\n`);
    return wrong > 0 || proof.code !== 0 ? 1 : 0;
  } finally {
    rmSync(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  }
}

process.exitCode = await main();
