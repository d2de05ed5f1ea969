// `npm run vectors -- DIR [--json]`: every reference case of every *.json in DIR against the product's own functions.
// A line a file, each differing case by its id, what is stricter by its rule. Exit 1 if any differs, 2 for a folder or
// file that is not one of reference cases.

import { readdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../../src/shared/errors.ts';
import { RULES, type RuleName } from './rules.ts';
import { runnerFor } from './runners.ts';
import { readVectorFile, type VectorFile } from './vector-file.ts';
import { type Verdict, verdictOf } from './verdict.ts';

interface FileResult {
  file: string;
  equal: number;
  stricter: number;
  differ: number;
  not_run: number;
  differing: { id: string; why: string }[];
  rules: Partial<Record<RuleName, string[]>>;
  reasons: Record<string, number>;
}

async function runFile(file: string, vectors: VectorFile): Promise<FileResult> {
  const result: FileResult = {
    file,
    equal: 0,
    stricter: 0,
    differ: 0,
    not_run: 0,
    differing: [],
    rules: {},
    reasons: {},
  };
  const name = vectors.name || path.basename(file, '.json');
  const runner = runnerFor(name);
  try {
    for (const one of vectors.cases) {
      const verdict: Verdict = runner
        ? await verdictOf(runner, one)
        : { status: 'differ', why: `no runner for files of the name ${name}` };
      result[verdict.status]++;
      if (verdict.status === 'differ') result.differing.push({ id: one.id, why: verdict.why });
      if (verdict.status === 'stricter') {
        result.rules[verdict.rule] ??= [];
        result.rules[verdict.rule]?.push(one.id);
      }
      if (verdict.status === 'not_run') result.reasons[verdict.reason] = (result.reasons[verdict.reason] ?? 0) + 1;
    }
  } finally {
    await runner?.close?.();
  }
  return result;
}

function print(result: FileResult, verbose: boolean): void {
  const { file, equal, stricter, differ, not_run } = result;
  const lines = [`${file}: ${equal} equal, ${stricter} stricter, ${differ} differ, ${not_run} not run`];
  for (const { id, why } of result.differing)
    lines.push(`  differs: ${id} (${why.replace(/\s+/g, ' ').slice(0, 300)})`);
  for (const [rule, ids] of Object.entries(result.rules))
    lines.push(`  stricter by ${rule}: ${verbose ? ids.join(', ') : ids.length}`);
  for (const [reason, count] of Object.entries(result.reasons)) lines.push(`  not run: ${count} (${reason})`);
  process.stdout.write(`${lines.join('\n')}\n`);
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { json: { type: 'boolean' }, verbose: { type: 'boolean' } },
    allowPositionals: true,
  });
  const folder = positionals[0];
  if (folder === undefined || positionals.length > 1) {
    process.stderr.write('usage: npm run vectors -- DIR [--json] [--verbose]\n');
    return 2;
  }
  let files: string[];
  const results: FileResult[] = [];
  try {
    files = readdirSync(folder).filter((name) => name.endsWith('.json'));
    if (files.length === 0) throw new Error('no *.json in it');
    for (const file of files.sort()) {
      const result = await runFile(file, readVectorFile(path.join(folder, file)));
      results.push(result);
      if (!values.json) print(result, values.verbose === true);
    }
  } catch (error) {
    process.stderr.write(`${folder}: ${messageOf(error)}\n`);
    return 2;
  }
  if (values.json) {
    const rules = Object.fromEntries(Object.entries(RULES).map(([name, rule]) => [name, rule.says]));
    process.stdout.write(`${JSON.stringify({ files: results, rules })}\n`);
  }
  return results.some((result) => result.differ > 0) ? 1 : 0;
}

process.exit(await main());
