// What a code task says of itself before any edit, and where a grade's files lie because of it.

import { describe, expect, it } from 'vitest';
import { taskFacts } from '../../../src/workers/rollout/environments/task-names.ts';
import { placedFiles } from '../../../src/workers/rollout/sandbox/grading.ts';
import { checkOf } from '../sandbox-grade-contract.ts';

const bytes = (files: Record<string, string>): Map<string, Buffer> =>
  new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));
const facts = (statement: string, initial: Record<string, string>, hidden: Record<string, string>) =>
  taskFacts(statement, new Map(Object.entries(initial)), bytes(hidden));

describe('the names that a task defines', () => {
  it('are functions at any depth, and names at the top of its Python files', () => {
    const text =
      'LIMIT: int = 3\nclass Vector:\n    def Norm(self): pass\nasync def Fetch(): x = 1\nif LIMIT == 3: y = 2\n';
    expect(facts('', { 'a.py': text, 'b.txt': 'def no(): pass' }, {})).toMatchObject({
      functions: ['Norm', 'Fetch'],
      names: ['LIMIT', 'Vector', 'Fetch'],
    });
  });
});

describe('data of a check is withheld', () => {
  const check = 'import json\nfor case in json.load(open("cases.json")): pass\n';
  it.each([
    ['that the check names and the task does not', '', {}, { 'cases.json': '' }, check, ['cases.json']],
    ['named by its folder', '', {}, { 'data/1.out': '' }, 'os.listdir("data")', ['data/1.out']],
    ['named by its ending', '', {}, { '1.out': '' }, 'glob("*.out")', ['1.out']],
    ['not what the statement names', 'It reads cases.json.', {}, { 'cases.json': '' }, check, []],
    ['not what a file of the task names', '', { 'a.py': 'open("cases.json")' }, { 'cases.json': '' }, check, []],
    ['not what nobody names', '', {}, { 'input.txt': '' }, check, []],
    ['not what is too large to travel', '', {}, { 'cases.json': 'x'.repeat(5 << 20) }, check, []],
  ])('%s', (_, statement, initial, data, code, withheld) => {
    expect(facts(statement, initial, { 'check.py': code, ...data }).withheld).toEqual(withheld);
  });

  it('from the candidate alone, in a grade apart alone', () => {
    const task = { functions: [], names: [], withheld: ['cases.json'] };
    const hidden = bytes({ 'check.py': '', 'cases.json': '', 'in.txt': '' });
    const places = (kind: 'apart' | 'in-process'): string[] =>
      placedFiles({ ...checkOf(''), kind, hidden, task }).map((file) => `${file.place}/${file.path}`);
    expect(places('apart').filter((path) => path.startsWith('work/'))).toEqual(['work/solution.py', 'work/in.txt']);
    expect(places('apart')).toContain('judge/cases.json');
    expect(places('in-process')).toContain('work/cases.json');
  });
});
