// Cases of grades made by the harness (test/fixtures/grades/*.cases), and a hardened box that grades them one by one
// with test/fixtures/grades/runner.py in the C runner's place.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CASES = path.join(ROOT, 'test/fixtures/grades');
const HARNESS = path.join(ROOT, 'infra/harness');

const CHECK = `import solution
for n in (0, 1, 7, -3, 10**20):
    assert solution.double(n) == 2 * n
assert solution.double('ab') == 'abab'
`;

export interface GradeCase {
  id: string;
  passes: boolean;
  mode: string;
  argv?: string[];
  module?: string;
  own: string[];
  files: Record<string, string>;
  hidden: Record<string, string>;
  /** What the task says of itself (`TaskFacts`). */
  task: { functions: string[]; names: string[]; withheld: string[] };
  timeout: number;
}

export interface Graded {
  id: string;
  passed: boolean;
  status: number | null;
  died: string | null;
  result: { completed?: boolean; exit?: number; why?: string; refused?: string };
  errno: number;
  memory: number;
  stdout: string;
  stderr: string;
}

/** `=== name key=value…`, then `--- path` and its text; each `--- wrong [path]` is a case of its own that must fail. */
export function gradeCases(file: string): GradeCase[] {
  const blocks = readFileSync(path.join(CASES, file), 'utf8').split(/^=== /m).slice(1);
  return blocks.flatMap((block) => {
    const [head, ...parts] = block.split(/^--- /m) as [string, ...string[]];
    const words = (head.split('\n')[0] as string).split(' ');
    const options = new Map<string, string>();
    while (/^[a-z]+=/.test(words.at(-1) ?? '')) {
      const [key, value] = (words.pop() as string).split(/=(.*)/s) as [string, string];
      options.set(key, value);
    }
    const list = (key: string): string[] | undefined => options.get(key)?.split(',');
    const files: Record<string, string> = {};
    const wrong: [string, string][] = [];
    for (const part of parts) {
      const end = part.indexOf('\n');
      const name = part.slice(0, end).trim();
      const text = part.slice(end + 1);
      if (name.startsWith('wrong')) wrong.push([name.slice(6) || 'solution.py', text]);
      else files[name] = text;
    }
    if (!files['check.py'] && !options.has('module') && !options.has('argv')) files['check.py'] = CHECK;
    const hiddenPaths = list('hidden') ?? ['check.py'];
    const pick = (inHidden: boolean): Record<string, string> =>
      Object.fromEntries(Object.entries(files).filter(([name]) => hiddenPaths.includes(name) === inHidden));
    const module = options.get('module');
    const argv = list('argv');
    const base = {
      mode: options.get('mode') ?? 'apart',
      own: list('own') ?? ['solution.py'],
      hidden: pick(true),
      task: { functions: list('functions') ?? [], names: list('names') ?? [], withheld: list('withheld') ?? [] },
      timeout: Number(options.get('timeout') ?? 20),
      ...(module ? { module } : {}),
      ...(argv ? { argv } : {}),
    };
    const id = words.join(' ');
    return [
      { ...base, id, files: pick(false), passes: options.get('expect') !== 'fail' },
      ...wrong.map(([name, text], n) => ({
        ...base,
        id: `${id}, wrong ${n + 1}`,
        files: { ...pick(false), [name]: text },
        passes: false,
      })),
    ];
  });
}

const BOOT = [
  'import json, os, sys',
  'files = json.loads(sys.stdin.readline())',
  'os.mkdir("/farm/harness")',
  '[open("/farm/harness/" + name, "w").write(text) for name, text in files["harness"].items()]',
  'exec(compile(files["runner"], "runner.py", "exec"), {"__name__": "__main__"})',
].join('\n');

const BOX = [
  ...['--network', 'none', '--cap-drop', 'ALL', '--cap-add', 'SETUID', '--cap-add', 'SETGID'],
  ...['--security-opt', 'no-new-privileges', '--read-only', '--memory', '512m', '--pids-limit', '200'],
  ...['--tmpfs', '/farm:mode=0755', '--tmpfs', '/tmp:mode=1777,size=64m'],
  ...['--tmpfs', '/work:uid=20000,gid=20000,mode=0755,size=64m', '--tmpfs', '/judge:uid=20001,gid=20001,mode=0700'],
];

/** What the two processes of a grade are forked from: an interpreter of their own, one that has served others, one that is also warm. */
export type Nursery = 'once' | 'kept' | 'warm';

export class GradeBox {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;
  private complaints = '';

  constructor() {
    const args = ['run', '--rm', '-i', '--name', `harness-test-${randomUUID()}`, ...BOX, 'rollout-farm/python'];
    this.child = spawn('docker', [...args, '/usr/bin/python3', '-c', BOOT], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stderr!.on('data', (data) => {
      this.complaints = (this.complaints + data).slice(-4000);
    });
    this.lines = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]();
    const names = readdirSync(HARNESS).filter((name) => name.endsWith('.py'));
    const harness = Object.fromEntries(names.map((name) => [name, readFileSync(path.join(HARNESS, name), 'utf8')]));
    this.tell({ harness, runner: readFileSync(path.join(CASES, 'runner.py'), 'utf8') });
  }

  async grade(given: GradeCase, nursery: Nursery): Promise<Graded> {
    this.tell({ ...given, nursery });
    const line = await this.lines.next();
    if (line.done) throw new Error(`the box ended: ${this.complaints}`);
    return JSON.parse(line.value) as Graded;
  }

  /** Its end of input ends the box, and with it everything inside. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.child.once('close', resolve));
    this.child.stdin!.end();
    await closed;
  }

  private tell(value: unknown): void {
    this.child.stdin!.write(`${JSON.stringify(value)}\n`);
  }
}
