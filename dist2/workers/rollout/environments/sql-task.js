// `sql-task`: a query whose rows must equal the expected ones. crucible's environment, with the database rebuilt in the
// box at every step (schema, seed, the episode's earlier queries, the new one) by a small script of ours, so that a
// query that hangs or bursts can be killed; the rows are compared out here.
import { readFileSync } from 'node:fs';
import { EnvironmentError } from '../../../shared/environment.js';
import { parseJson } from '../../../shared/json/json.js';
import { isMap, mapOf, pyEqual } from '../../../shared/json/value.js';
import { str, surrogateFault } from '../../../shared/python/text.js';
import { diagnosticsOf, stepLimit } from './box-command.js';
import { fencedText } from './fenced-block.js';
import { lostBoxStep, missedStep } from './missed-step.js';
import { attemptDigest } from './state-digest.js';
const MISS = -0.1;
/** Longer queries are refused: all of an episode's travel into the box at every step. */
const QUERY_CHARACTERS = 1_000_000;
const SCRIPT = readFileSync(new URL('./sql-session.py', import.meta.url), 'utf8');
/** What runs in the box. Isolated: no site packages, no environment, nothing imported from the work folder. */
export const SQL_COMMAND = ['/usr/bin/python3', '-I', '-S', '-B', '-c', SCRIPT];
/** What it reads: schema, seed, the new query, the earlier ones. UTF-16 carries lone surrogates too. */
export function sqlInput(texts) {
    const bytes = texts.map((text) => Buffer.from(text, 'utf16le'));
    return Buffer.concat([Buffer.from(`${bytes.map((one) => one.length).join(' ')}\n`), ...bytes]);
}
export class SqlTaskEnvironment {
    name = 'sql-task';
    grade = 'outside';
    settings;
    context;
    /** What ran to its end, well or with an error, in order; and how long all of it took when it last ran. */
    earlier = [];
    earlierMs = 0;
    used = false;
    solved = false;
    attempts = 0n;
    constructor(config, context) {
        this.settings = config;
        this.context = context;
    }
    async reset(_seed) {
        this.earlier = [];
        this.earlierMs = 0;
        this.solved = false;
        this.attempts = 0n;
        return mapOf({ task: this.setting('task'), schema: this.setting('schema_sql') });
    }
    async step(action) {
        const query = str(action);
        this.attempts += 1n;
        const fault = surrogateFault(query);
        if (fault)
            return this.miss(fault);
        if (query.length > QUERY_CHARACTERS)
            return this.miss(`a query of ${query.length} characters is too long`);
        const limit = stepLimit(this.context);
        const result = await this.runSession(query, limit);
        const diagnostics = diagnosticsOf(result);
        const stage = result.stderr.toString('utf8');
        const answer = answerOf(result);
        if (answer?.has('setup'))
            throw new EnvironmentError(`schema or seed: ${str(answer.get('setup'))}`);
        if (!stage.includes('ready'))
            throw new EnvironmentError(`schema or seed did not end: ${endOf(result, limit)}`);
        // Killed before or under the new query: it is left out of what later steps repeat.
        if (result.cause === 'timeout' || result.oomKilled || result.cause === 'signal') {
            return this.miss(endOf(result, limit), diagnostics);
        }
        this.earlier.push(query);
        this.earlierMs = result.wallMs;
        if (result.stdoutBytes > result.stdout.length) {
            return this.miss(`more than ${this.context.outputBytes} bytes of rows`, diagnostics);
        }
        if (!answer)
            return this.miss(`the query ended its session: ${endOf(result, limit)}`, diagnostics);
        const error = answer.get('error') ?? answer.get('raised');
        if (error !== undefined)
            return this.miss(str(error), diagnostics);
        const rows = answer.get('rows');
        this.solved = pyEqual(rows, this.setting('expected_rows'));
        return {
            observation: mapOf({ rows }),
            reward: this.solved ? 1 : MISS,
            done: this.solved,
            info: mapOf({ correct: this.solved, attempts: this.attempts }),
            diagnostics,
        };
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
        return fencedText(text);
    }
    async runSession(query, limit) {
        const box = await this.context.box();
        // A query can leave a file (ATTACH), which would meet its own repetition.
        if (this.used)
            await box.reset();
        this.used = true;
        const [schema, seed] = [str(this.setting('schema_sql')), str(this.setting('seed_sql'))];
        return box.run({
            argv: [...SQL_COMMAND],
            stdin: sqlInput([schema, seed, query, ...this.earlier]),
            // What is repeated does not eat into the new query's own time.
            timeoutMs: limit.ms + 2 * this.earlierMs,
            outputBytes: this.context.outputBytes,
            signal: this.context.signal,
        });
    }
    miss(error, diagnostics = []) {
        return missedStep(MISS, error, { info: { attempts: this.attempts }, diagnostics });
    }
    setting(name) {
        return this.settings.get(name) ?? null;
    }
}
function answerOf(result) {
    if (result.stdoutBytes > result.stdout.length)
        return null;
    try {
        const value = parseJson(result.stdout.toString('utf8'));
        return isMap(value) ? value : null;
    }
    catch {
        return null;
    }
}
function endOf(result, limit) {
    if (result.cause === 'timeout')
        return `timed out after ${limit.text}s`;
    if (result.oomKilled)
        return 'out of memory';
    if (result.cause === 'launch')
        return result.launchError?.message ?? 'it could not be started';
    return result.cause === 'signal' ? `ended by signal ${-result.exitCode}` : `exit ${result.exitCode}`;
}
