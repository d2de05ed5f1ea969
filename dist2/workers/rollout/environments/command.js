// `command`: one command over the task's fixed files; it solves the task if it exits 0 and prints what is expected.
// crucible's environment, each step in a work folder of its own, compared out here.
import { mapOf } from '../../../shared/json/value.js';
import { strip } from '../../../shared/python/text.js';
import { layFiles } from '../../../shared/safe-path.js';
import { argvCompletion, argvOf } from './argv.js';
import { launchFailure, layTaskFiles, observed, runSeen, stepLimit } from './box-command.js';
import { lostBoxStep, missedStep } from './missed-step.js';
import { attemptDigest } from './state-digest.js';
const MISS = -0.1;
export class CommandEnvironment {
    name = 'command';
    grade = 'outside';
    settings;
    context;
    solved = false;
    attempts = 0n;
    constructor(config, context) {
        this.settings = config;
        this.context = context;
    }
    async reset(_seed) {
        this.solved = false;
        this.attempts = 0n;
        return mapOf({ task: this.setting('task'), files: this.setting('files') });
    }
    async step(action) {
        const command = argvOf(action);
        if (command.kind === 'raises' && !command.counted) {
            return missedStep(MISS, command.error, { info: { attempts: this.attempts } });
        }
        this.attempts += 1n;
        const laid = layFiles(this.setting('files'));
        if (!laid.ok) {
            // Python's ValueError is a failed grade there, its OSError leaves the step.
            if (laid.kind !== 'refused')
                return this.miss(laid.error);
            return this.graded({ stdout: '', stderr: laid.error, exitCode: -1, stdoutCut: false, diagnostics: [] });
        }
        if (command.kind === 'raises')
            return this.miss(command.error);
        if (command.kind === 'launch')
            return this.graded(launchFailure(command.error));
        const box = await this.context.box();
        await box.reset();
        await layTaskFiles(box, laid.files);
        return this.graded(await runSeen(box, command.argv, stepLimit(this.context, this.setting('timeout')), this.context));
    }
    lostBox(lost) {
        return lostBoxStep(MISS, lost, { attempts: this.attempts });
    }
    digest() {
        return attemptDigest(this.setting('task'), this.solved, this.attempts);
    }
    config() {
        return this.settings;
    }
    parseCompletion(text) {
        return argvCompletion(text);
    }
    graded(seen) {
        this.solved = !seen.stdoutCut && seen.exitCode === 0 && strip(seen.stdout) === this.setting('expected_stdout');
        const info = mapOf({ correct: this.solved, attempts: this.attempts });
        if (seen.stdoutCut)
            info.set('error', `more than ${this.context.outputBytes} bytes of output`);
        return {
            observation: observed(seen),
            reward: this.solved ? 1 : MISS,
            done: this.solved,
            info,
            diagnostics: seen.diagnostics,
        };
    }
    miss(error) {
        return missedStep(MISS, error, { info: { attempts: this.attempts } });
    }
    setting(name) {
        return this.settings.get(name) ?? null;
    }
}
