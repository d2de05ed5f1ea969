// `command`: one command over the task's fixed files; it solves the task if it exits 0 and prints what is expected.
// crucible's environment, each step in a work folder of its own, compared out here.

import type { Environment, EnvironmentContext, StepResult } from '../../../shared/environment.ts';
import { mapOf, type Value, type ValueMap } from '../../../shared/json/value.ts';
import { strip } from '../../../shared/python/text.ts';
import { layFiles } from '../../../shared/safe-path.ts';
import type { BoxLost } from '../../../shared/sandbox.ts';
import { argvCompletion, argvOf } from './argv.ts';
import { launchFailure, layTaskFiles, observed, runSeen, type Seen, stepLimit } from './box-command.ts';
import { lostBoxStep, missedStep } from './missed-step.ts';
import { attemptDigest } from './state-digest.ts';

const MISS = -0.1;

export class CommandEnvironment implements Environment {
  readonly name = 'command';
  readonly grade = 'outside';
  private readonly settings: ValueMap;
  private readonly context: EnvironmentContext;
  private solved = false;
  private attempts = 0n;

  constructor(config: ValueMap, context: EnvironmentContext) {
    this.settings = config;
    this.context = context;
  }

  async reset(_seed: Value): Promise<Value> {
    this.solved = false;
    this.attempts = 0n;
    return mapOf({ task: this.setting('task'), files: this.setting('files') });
  }

  async step(action: Value): Promise<StepResult> {
    const command = argvOf(action);
    if (command.kind === 'raises' && !command.counted) {
      return missedStep(MISS, command.error, { info: { attempts: this.attempts } });
    }
    this.attempts += 1n;
    const laid = layFiles(this.setting('files') as ValueMap);
    if (!laid.ok) {
      // Python's ValueError is a failed grade there, its OSError leaves the step.
      if (laid.kind !== 'refused') return this.miss(laid.error);
      return this.graded({ stdout: '', stderr: laid.error, exitCode: -1, stdoutCut: false, diagnostics: [] });
    }
    if (command.kind === 'raises') return this.miss(command.error);
    if (command.kind === 'launch') return this.graded(launchFailure(command.error));
    const box = await this.context.box();
    await box.reset();
    await layTaskFiles(box, laid.files);
    return this.graded(
      await runSeen(box, command.argv, stepLimit(this.context, this.setting('timeout')), this.context),
    );
  }

  lostBox(lost: BoxLost): StepResult {
    return lostBoxStep(MISS, lost, { attempts: this.attempts });
  }

  digest(): string {
    return attemptDigest(this.setting('task'), this.solved, this.attempts);
  }

  config(): ValueMap {
    return this.settings;
  }

  parseCompletion(text: string): Value {
    return argvCompletion(text);
  }

  private graded(seen: Seen): StepResult {
    this.solved = !seen.stdoutCut && seen.exitCode === 0 && strip(seen.stdout) === this.setting('expected_stdout');
    const info = mapOf({ correct: this.solved, attempts: this.attempts });
    if (seen.stdoutCut) info.set('error', `more than ${this.context.outputBytes} bytes of output`);
    return {
      observation: observed(seen),
      reward: this.solved ? 1 : MISS,
      done: this.solved,
      info,
      diagnostics: seen.diagnostics,
    };
  }

  private miss(error: string): StepResult {
    return missedStep(MISS, error, { info: { attempts: this.attempts } });
  }

  private setting(name: string): Value {
    return this.settings.get(name) ?? null;
  }
}
