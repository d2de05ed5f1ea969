// `terminal`: a work folder that lasts over the episode's commands, and a goal over its files. crucible's environment
// with the goal as data: judged out here over files read from the box, where nothing runs between two steps.
import { sha256 } from '../../../shared/claim.js';
import { EnvironmentError } from '../../../shared/environment.js';
import { mapOf } from '../../../shared/json/value.js';
import { repr } from '../../../shared/python/text.js';
import { pyDecodeText } from '../../../shared/python/utf8.js';
import { layFiles } from '../../../shared/safe-path.js';
import { goalHolds } from '../../../shared/spec/goal.js';
import { argvCompletion, argvOf } from './argv.js';
import { launchFailure, layTaskFiles, observed, runSeen, stepLimit } from './box-command.js';
import { lostBoxStep, missedStep } from './missed-step.js';
import { filesDigest } from './state-digest.js';
const MISS = -0.05;
/** What is read back of the work folder; more than this is no longer judged. */
const READ_CAPS = { maxBytes: 64 * 1024 * 1024, maxEntries: 10_000 };
export class TerminalEnvironment {
    name = 'terminal';
    grade = 'outside';
    settings;
    context;
    opened = null;
    folder = new Map();
    solved = false;
    constructor(config, context) {
        this.settings = config;
        this.context = context;
    }
    async reset(_seed) {
        const laid = layFiles(this.setting('files'));
        if (!laid.ok)
            throw new EnvironmentError(laid.error);
        await this.opened?.reset();
        this.opened = null;
        this.folder = textOf(laid.files).files;
        this.solved = false;
        return mapOf({ task: this.setting('task'), files: this.setting('files') });
    }
    async step(action) {
        const command = argvOf(action);
        if (command.kind === 'raises')
            return missedStep(MISS, command.error, { info: { solved: this.solved } });
        const box = await this.box();
        const seen = command.kind === 'launch'
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
        if (fault !== null)
            info.set('error', fault);
        const diagnostics = listing.truncated ? [...seen.diagnostics, 'disk'] : seen.diagnostics;
        return {
            observation: observed(seen),
            reward: this.solved ? 1 : MISS,
            done: this.solved,
            info,
            diagnostics,
        };
    }
    lostBox(lost) {
        return lostBoxStep(MISS, lost, { solved: this.solved });
    }
    digest() {
        return filesDigest(this.folder, this.solved);
    }
    config() {
        return this.settings;
    }
    parseCompletion(text) {
        return argvCompletion(text);
    }
    /** The box with the task's files in it: opened when the first command needs it. */
    async box() {
        if (this.opened)
            return this.opened;
        const laid = layFiles(this.setting('files'));
        if (!laid.ok)
            throw new EnvironmentError(laid.error);
        const box = await this.context.box();
        await layTaskFiles(box, laid.files);
        this.opened = box;
        return box;
    }
    setting(name) {
        return this.settings.get(name) ?? null;
    }
}
/** Files as text; one that is not UTF-8 stands for itself by its hash, and is named. */
function textOf(files) {
    const texts = new Map();
    let fault = null;
    for (const [path, content] of files) {
        const decoded = pyDecodeText(content);
        texts.set(path, decoded.ok ? decoded.text : `sha256/${sha256(content)}`);
        if (!decoded.ok)
            fault ??= `${repr(path)}: ${decoded.error}`;
    }
    return { files: texts, fault };
}
