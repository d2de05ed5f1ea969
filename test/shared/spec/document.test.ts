import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/shared/config.ts';
import { mapOf, type ValueMap } from '../../../src/shared/json/value.ts';
import { diffDocuments } from '../../../src/shared/spec/document.ts';
import { printProblems } from '../../../src/shared/spec/problem.ts';
import { readSpec } from '../../../src/shared/spec/reader.ts';

const EXAMPLES = path.join(import.meta.dirname, '../../../examples');

async function run(file: string, environment: Record<string, string> = {}) {
  const result = await readSpec(file, readConfig(environment));
  if (!result.ok) throw new Error(printProblems(result.problems));
  if (result.kind !== 'run') throw new Error('not a run');
  return result;
}

describe('what changed between two documents', () => {
  const document = (change: Record<string, bigint | string | ValueMap>): ValueMap =>
    mapOf({ name: 'a', seed: 1n, tasks: mapOf({ sha256: 'a'.repeat(64), lines: 3n }), ...change });

  it('is named field by field', () => {
    expect(diffDocuments(document({}), document({}))).toEqual([]);
    expect(diffDocuments(document({}), document({ seed: 2n }))).toEqual(['seed: 1 → 2']);
    expect(diffDocuments(document({}), document({ policy: 'x', name: 'b' }))).toEqual([
      'name: a → b',
      'policy: (nothing) → x',
    ]);
  });

  it('says of files that their content changed', () => {
    const other = document({ tasks: mapOf({ sha256: 'b'.repeat(64), lines: 4n }) });
    expect(diffDocuments(document({}), other)).toEqual([
      'tasks: the content changed (sha256 aaaaaaaaaaaa… → bbbbbbbbbbbb…)',
    ]);
  });
});

describe('the examples', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'farm-examples-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('demo: twenty groups of every kind, each task with its completions', async () => {
    const { spec, source, warnings } = await run(path.join(EXAMPLES, 'demo.yaml'));
    expect([spec.groupSize, source.count, source.verified, warnings]).toEqual([8, 20, 5, []]);
    expect([...source.environments].sort()).toEqual(['code-task', 'guess', 'sql-task', 'text']);
    for (const task of source.tasks()) expect(task.plays).toHaveLength(8);
  });

  it('demo: is the same run wherever its verifier listens', async () => {
    const [here, there] = await Promise.all(
      ['http://127.0.0.1:1001', 'http://127.0.0.1:1002'].map((url) =>
        run(path.join(EXAMPLES, 'demo.yaml'), { AMBERTRACE_BASE_URL: url }),
      ),
    );
    expect(here?.spec.verifier?.baseUrl).not.toBe(there?.spec.verifier?.baseUrl);
    expect(here?.spec.document).toEqual(there?.spec.document);
  });

  it.each([
    [
      'humaneval',
      { env: 'code-task', config: { files: { 'solution.py': '' }, task: 't', check: { command: ['true'] } } },
    ],
    ['chinook', { env: 'sql-task', config: { schema_sql: '', seed_sql: '', task: 't', expected_rows: [[1]] } }],
  ])('%s: is sound beside data of the form that it describes', async (name, task) => {
    await copyFile(path.join(EXAMPLES, `${name}.yaml`), path.join(folder, `${name}.yaml`));
    await writeFile(path.join(folder, 'tasks.jsonl'), JSON.stringify({ id: 'a', prompt: 'p', ...task }));
    await writeFile(
      path.join(folder, 'completions.jsonl'),
      JSON.stringify({ task_id: 'a', action: 'x', label: 'pass' }),
    );
    const { source } = await run(path.join(folder, `${name}.yaml`));
    expect(source.count).toBe(1);
  });
});
