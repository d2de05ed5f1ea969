// `terminal`: a work folder that lasts over the episode's commands, and a goal over its files. crucible's environment
// with the goal as data: judged out here over files read from the box, where nothing runs between two steps.

import { sha256 } from '../../../shared/claim.ts';
import type { Environment, EnvironmentContext, StepResult } from '../../../shared/environment.ts';
import { EnvironmentError } from '../../../shared/environment.ts';
import { mapOf, type Value, type ValueMap } from '../../../shared/json/value.ts';
import type { Diagnostic } from '../../../shared/outcome.ts';
import { repr } from '../../../shared/python/text.ts';
import { pyDecodeText } from '../../../shared/python/utf8.ts';
import { layFiles } from '../../../shared/safe-path.ts';
import type { Box, BoxLost } from '../../../shared/sandbox.ts';
import { goalHolds } from '../../../shared/spec/goal.ts';
import { argvCompletion, argvOf } from './argv.ts';
import { launchFailure, layTaskFiles, observed, runSeen, stepLimit } from './box-command.ts';
import { lostBoxStep, missedStep } from './missed-step.ts';
import { filesDigest } from './state-digest.ts';

const MISS = -0.05;
/** What is read back of the work folder; more than this is no longer judged. */
const READ_CAPS = { maxBytes: 64 * 1024 * 1024, maxEntries: 10_000 };

export class TerminalEnvironment implements Environment {
  readonly name = 'terminal';
  readonly grade = 'outside';
  private readonly settings: ValueMap;
  private readonly context: EnvironmentContext;
  private opened: Box | null = null;
  private folder = new Map<string, string>();
  private solved = false;

  constructor(config: ValueMap, context: EnvironmentContext) {
    this.settings = config;
    this.context = context;
  }

  async reset(_seed: Value): Promise<Value> {
    const laid = layFiles(this.setting('files') as ValueMap);
    if (!laid.ok) throw new EnvironmentError(laid.error);
    await this.opened?.reset();
    this.opened = null;
    this.folder = textOf(laid.files).files;
    this.solved = false;
    return mapOf({ task: this.setting('task'), files: this.setting('files') });
  }

  async step(action: Value): Promise<StepResult> {
    const command = argvOf(action);
    if (command.kind === 'raises') return missedStep(MISS, command.error, { info: { solved: this.solved } });
    const box = await this.box();
    const seen =
      command.kind === 'launch'
        ? launchFailure(command.error)
        : await runSeen(box, command.argv, stepLimit(this.context, this.setting('timeout')), this.context);
    const listing = await box.read(READ_CAPS);
    const read = textOf(listing.files);
    this.folder = read.files;
    const fault = listing.truncated
      ? `the work folder holds more than ${READ_CAPS.maxEntries} entries or ${READ_CAPS.maxBytes} bytes`
      : read.fault;
    this.solved = fault === null && goalHolds(this.setting('goal'), this.folder);
    const info = mapOf({ solved: this.solved });
    if (fault !== null) info.set('error', fault);
    const diagnostics: Diagnostic[] = listing.truncated ? [...seen.diagnostics, 'disk'] : seen.diagnostics;
    return {
      observation: observed(seen),
      reward: this.solved ? 1 : MISS,
      done: this.solved,
      info,
      diagnostics,
    };
  }

  lostBox(lost: BoxLost): StepResult {
    return lostBoxStep(MISS, lost, { solved: this.solved });
  }

  digest(): string {
    return filesDigest(this.folder, this.solved);
  }

  config(): ValueMap {
    return this.settings;
  }

  parseCompletion(text: string): Value {
    return argvCompletion(text);
  }

  /** The box with the task's files in it: opened when the first command needs it. */
  private async box(): Promise<Box> {
    if (this.opened) return this.opened;
    const laid = layFiles(this.setting('files') as ValueMap);
    if (!laid.ok) throw new EnvironmentError(laid.error);
    const box = await this.context.box();
    await layTaskFiles(box, laid.files);
    this.opened = box;
    return box;
  }

  private setting(name: string): Value {
    return this.settings.get(name) ?? null;
  }
}

/** Files as text; one that is not UTF-8 stands for itself by its hash, and is named. */
function textOf(files: ReadonlyMap<string, Buffer>): { files: Map<string, string>; fault: string | null } {
  const texts = new Map<string, string>();
  let fault: string | null = null;
  for (const [path, content] of files) {
    const decoded = pyDecodeText(content);
    texts.set(path, decoded.ok ? decoded.text : `sha256/${sha256(content)}`);
    if (!decoded.ok) fault ??= `${repr(path)}: ${decoded.error}`;
  }
  return { files: texts, fault };
}
