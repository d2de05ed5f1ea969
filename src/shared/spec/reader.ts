// Reads a run spec, or a config with a verifier's sections alone, with the task and completion files that it names.
// Everything that is wrong is found in one reading and reported with its place; nothing is started or written.
// Refused besides: secrets, and by its name what is not built yet.

import path from 'node:path';
import type { Config } from '../config.ts';
import { isMap, type Value, type ValueMap } from '../json/value.ts';
import { assignCompletions } from './completions.ts';
import { runDocument, verifierDocument } from './document.ts';
import { Fields } from './fields.ts';
import { LineFile, readBytes, readText } from './file.ts';
import { ProblemList, pathText, placeOf, type Report, type SpecProblem, show, suggestion } from './problem.ts';
import { findSecrets } from './secrets.ts';
import { hasDomain, isVerifierFile, readSettings } from './sections.ts';
import { type Policy, type TaskSource, taskSource } from './source.ts';
import type { RunSpec } from './spec.ts';
import { checkInlineTasks, checkTaskFile, type TaskList } from './tasks.ts';
import { resolveVerifier, VERIFIER_SECTIONS, type VerifierConfig } from './verifier-config.ts';
import { readYaml, YamlError, type YamlText } from './yaml.ts';

export type SpecResult =
  | { ok: true; kind: 'run'; spec: RunSpec; source: TaskSource; warnings: string[] }
  | { ok: true; kind: 'verifier'; verifier: VerifierConfig; document: ValueMap; warnings: string[] }
  | { ok: false; problems: SpecProblem[] };

/** Finding a place in a text takes time: the first problems have one, and so have more where the text is small. */
const LOCATED = 20;
const LOCATED_CHARACTERS = 50_000_000;

export async function readSpec(file: string, config: Config): Promise<SpecResult> {
  const text = await readText(file, file);
  if (!text.ok) return { ok: false, problems: [text.problem] };
  let yaml: YamlText;
  try {
    yaml = readYaml(text.value, file);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    return {
      ok: false,
      problems: [{ file, ...placeOf(text.value, error), path: '', message: error.message }],
    };
  }
  if (!isMap(yaml.value)) {
    const what = yaml.value === null ? 'is empty' : `is ${show(yaml.value)}`;
    return { ok: false, problems: [{ file, path: '', message: `${what}; a spec is a mapping of keys to values` }] };
  }
  return new SpecReading(file, text.value, yaml.value, yaml, config).read();
}

class SpecReading {
  private readonly file: string;
  private readonly folder: string;
  private readonly root: ValueMap;
  private readonly config: Config;
  private readonly problems = new ProblemList();
  private readonly warnings: string[] = [];
  private readonly report: Report;

  constructor(file: string, text: string, root: ValueMap, yaml: YamlText, config: Config) {
    this.file = file;
    this.folder = path.dirname(file);
    this.root = root;
    this.config = config;
    this.report = (at, message) => {
      const found = this.problems.items.length;
      const spot = found < LOCATED || found * text.length < LOCATED_CHARACTERS ? yaml.locate(at) : null;
      this.problems.add({ file, ...(spot ? placeOf(text, spot) : {}), path: pathText(at), message });
    };
  }

  async read(): Promise<SpecResult> {
    findSecrets(this.root, this.report);
    if (isVerifierFile(this.root)) return this.readVerifierFile();
    const { groupSizeKnown, ...settings } = readSettings(
      this.root,
      path.resolve(this.folder),
      this.config,
      this.report,
      this.warnings,
    );
    const verifier = this.readVerifier();
    const tasks = await this.readTasks();
    const policy = await this.readPolicy(
      tasks,
      groupSizeKnown ? settings.groupSize : null,
      settings.groups.refillDegenerate,
    );
    if (this.problems.items.length > 0 || tasks === null || policy === null) return this.failed();
    const partial = { ...settings, verifier };
    const document = runDocument(partial, this.root, tasks.lines, policy);
    const source = taskSource(tasks, policy, settings.seed, settings.groupSize);
    return { ok: true, kind: 'run', spec: { ...partial, document }, source, warnings: this.warnings };
  }

  private failed(): SpecResult {
    // In the order of the text, as far as places are known; the spec's own faults before those of the files it names.
    const own = this.problems.items.filter((problem) => problem.file === this.file);
    const others = this.problems.items.filter((problem) => problem.file !== this.file);
    const last = Number.MAX_SAFE_INTEGER;
    own.sort((a, b) => (a.line ?? last) - (b.line ?? last) || (a.column ?? 0) - (b.column ?? 0));
    return { ok: false, problems: [...own, ...others] };
  }

  private readVerifierFile(): SpecResult {
    new Fields(this.root, [], this.report).only(VERIFIER_SECTIONS);
    const verifier = this.readVerifier();
    if (verifier === null && this.problems.items.length === 0) this.report(['domain'], 'is required: an object');
    if (verifier === null || this.problems.items.length > 0) return this.failed();
    const document = verifierDocument(verifier, this.root);
    return { ok: true, kind: 'verifier', verifier, document, warnings: this.warnings };
  }

  private readVerifier(): VerifierConfig | null {
    const { config, problems } = resolveVerifier(this.root, this.config.ambertraceBaseUrl);
    // A secret is both unknown there and found before: once is enough.
    for (const problem of problems) {
      if (!this.problems.has(problem.path)) this.report(problem.path.split('.'), problem.message);
    }
    return config;
  }

  private async readTasks(): Promise<TaskList | null> {
    const given = this.root.get('tasks') ?? null;
    const domain = hasDomain(this.root);
    if (Array.isArray(given) && given.length > 0) return checkInlineTasks(given, domain, this.problems, this.report);
    if (Array.isArray(given)) this.report(['tasks'], 'needs at least one task, given an empty list');
    else if (given === null) this.report(['tasks'], 'is required: the path of a JSONL file, or a list of tasks');
    else if (typeof given !== 'string') this.report(['tasks'], `must be a path or a list, given ${show(given)}`);
    else {
      const lines = await this.readLines(['tasks'], given);
      if (lines !== null && lines.count > 0) return checkTaskFile(lines, domain, this.problems);
      if (lines !== null) this.report(['tasks'], `${given} is empty: at least one task is needed`);
    }
    return null;
  }

  private async readPolicy(
    tasks: TaskList | null,
    groupSize: number | null,
    refillDegenerate: number,
  ): Promise<Policy | null> {
    const fields = new Fields(this.root.get('policy'), ['policy'], this.report);
    const kind = fields.raw('kind');
    if (kind === 'scripted') {
      fields.only(['kind', 'actions']);
      if (refillDegenerate > 0)
        this.report(
          ['groups', 'refill_degenerate'],
          'a script answers the same again; allowed with policy.kind scripted: 0',
        );
      const actions: Value | undefined = fields.raw('actions');
      if (Array.isArray(actions) && actions.length > 0) return { kind, actions };
      fields.problem('actions', `must be a list of at least one action, given ${show(actions)}`);
      return null;
    }
    if (kind === 'completions') {
      fields.only(['kind', 'path', 'cycle']);
      const cycle = fields.bool('cycle', false);
      const given = fields.text('path', true);
      const file = given === null ? null : await this.readLines(['policy', 'path'], given);
      if (file === null || tasks === null) return null;
      const rule = { tasks, groupSize, cycle, refillDegenerate };
      return { kind, file, cycle, assignment: assignCompletions(file, rule, this.problems, this.warnings) };
    }
    const kinds = ['scripted', 'completions'];
    if (kind === 'openai') fields.problem('kind', `openai is not built yet; allowed: ${kinds.join(', ')}`);
    else if (!this.root.has('policy'))
      this.report(['policy'], `is required: an object with kind ${kinds.join(' or ')}`);
    else if (typeof kind === 'string')
      fields.problem('kind', `there is no policy ${show(kind)}; ${suggestion(kind, kinds)}`);
    else fields.problem('kind', `must be one of ${kinds.join(', ')}, given ${show(kind)}`);
    return null;
  }

  private async readLines(at: string[], given: string): Promise<LineFile | null> {
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(given)) {
      this.report(at, 'must be the path of a file, given an address');
      return null;
    }
    const shown = path.isAbsolute(given) ? given : path.join(this.folder, given);
    const bytes = await readBytes(shown, shown);
    const lines = bytes.ok ? LineFile.of(bytes.value, shown) : bytes;
    if (lines.ok) return lines.value;
    if (bytes.ok) this.problems.add(lines.problem);
    else this.report(at, `${shown}: ${lines.problem.message}`);
    return null;
  }
}
