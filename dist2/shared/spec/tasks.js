// The tasks of a spec, from a JSONL file or an inline list (which becomes lines too): each is checked and forgotten,
// so that a hundred thousand of them cost their text and no more. Refused: ids given twice, unknown keys and
// environments, configs that their environment would not take, `text` without a `domain`.
import { dumpJson, JsonError, parseJson } from '../json/json.js';
import { isMap } from '../json/value.js';
import { ENVIRONMENT_CONFIGS } from './environment-config.js';
import { isLine } from './fields.js';
import { LineFile } from './file.js';
import { pathText, placeOf, show, suggestion } from './problem.js';
import { bare } from './yaml.js';
/** Less than readers take by default: documents and trajectories put a few levels around what stands here. */
export const MAX_DEPTH = 850;
/** An id stands in every record, and in a line of the plan's index. */
const MAX_ID = 512;
const KEYS = ['id', 'env', 'config', 'seed', 'prompt', 'metadata', 'verify'];
/** Checks every line of a task file. */
export function checkTaskFile(lines, hasDomain, problems) {
    const list = emptyList(lines);
    for (let i = 0; i < lines.count && !problems.full; i++) {
        const line = lines.line(i);
        const report = (path, message) => problems.add({ file: lines.shown, line, path: pathText(path), message });
        const value = readLine(lines, i, { duplicates: 'error' }, problems);
        if (value !== undefined)
            checkTask(value, i, list, hasDomain, report, (at) => `line ${lines.line(at)}`);
    }
    return list;
}
/** Checks the inline list of a spec; `report` takes paths from the spec's root. */
export function checkInlineTasks(tasks, hasDomain, problems, report) {
    const bytes = Buffer.from(tasks.map((task) => `${dumpJson(task, { compact: true })}\n`).join(''));
    const read = LineFile.of(bytes, 'tasks');
    if (!read.ok) {
        report(['tasks'], `too much to stand in the spec (${read.problem.message}): put the tasks into a file`);
        return emptyList(null);
    }
    const list = emptyList(read.value);
    for (let i = 0; i < tasks.length && !problems.full; i++) {
        const under = (path, message) => report(['tasks', i, ...path], message);
        checkTask(tasks[i], i, list, hasDomain, under, (at) => `tasks[${at}]`);
    }
    return list;
}
/** The task of a line that was checked before. */
export function readTask(lines, index) {
    const map = parseJson(lines.text(index));
    const env = map.get('env');
    return {
        id: map.get('id'),
        env,
        config: map.get('config') ?? new Map(),
        seed: map.get('seed') ?? null,
        prompt: map.get('prompt') ?? null,
        metadata: map.get('metadata') ?? null,
        verify: env === 'text' || map.get('verify') === true,
    };
}
/** The JSON value of a line, or undefined with the problem reported. */
export function readLine(lines, index, options, problems) {
    const text = lines.text(index);
    try {
        return parseJson(text, { maxDepth: MAX_DEPTH, ...options });
    }
    catch (error) {
        if (!(error instanceof JsonError))
            throw error;
        const message = error.beyond ? `the line cannot be read: ${bare(error)}` : `is not JSON: ${bare(error)}`;
        const place = placeOf(text, error, lines.line(index));
        problems.add({ file: lines.shown, ...place, path: '', message });
        return undefined;
    }
}
function emptyList(lines) {
    const none = lines ?? LineFile.of(Buffer.alloc(0), 'tasks').value;
    return { lines: none, index: new Map(), environments: new Set(), verified: 0 };
}
function checkTask(task, place, list, hasDomain, report, placeName) {
    if (!isMap(task)) {
        report([], `a task must be an object with ${KEYS.slice(0, 3).join(', ')}, given ${show(task)}`);
        return;
    }
    for (const key of task.keys()) {
        if (!KEYS.includes(key))
            report([key], `unknown key; ${suggestion(key, KEYS)}`);
    }
    checkId(task.get('id'), place, list, report, placeName);
    const verify = task.get('verify');
    if (verify !== undefined && typeof verify !== 'boolean')
        report(['verify'], `must be true or false, given ${show(verify)}`);
    const seed = task.get('seed');
    if (seed !== undefined && seed !== null && typeof seed !== 'bigint')
        report(['seed'], `must be an integer, given ${show(seed)}`);
    const prompt = task.get('prompt') ?? null;
    if (prompt !== null && typeof prompt !== 'string' && !(Array.isArray(prompt) && prompt.every(isMap)))
        report(['prompt'], `must be a text or a list of messages, given ${show(prompt)}`);
    const metadata = task.get('metadata') ?? null;
    if (metadata !== null && !isMap(metadata))
        report(['metadata'], `must be an object, given ${show(metadata)}`);
    const env = checkEnvironment(task, report);
    if (env === null)
        return;
    list.environments.add(env);
    if (env !== 'text' && verify !== true)
        return;
    list.verified++;
    if (hasDomain)
        return;
    if (env === 'text')
        report(['env'], 'a text task is graded by the verifier: the spec needs a `domain` section');
    else
        report(['verify'], 'needs a `domain` section in the spec');
}
function checkId(id, place, list, report, placeName) {
    const first = typeof id === 'string' ? list.index.get(id) : undefined;
    if (id === undefined)
        report(['id'], 'is required: a text, unique in the run');
    else if (typeof id !== 'string' || !isLine(id) || id.length > MAX_ID)
        report(['id'], `must be one line of text of at most ${MAX_ID} characters, given ${show(id)}`);
    else if (first !== undefined)
        report(['id'], `${JSON.stringify(id)} is already the id of ${placeName(first)}`);
    else
        list.index.set(id, place);
}
function checkEnvironment(task, report) {
    const names = [...ENVIRONMENT_CONFIGS.keys()];
    const env = task.get('env');
    if (env === undefined) {
        report(['env'], `is required: one of ${names.join(', ')}`);
        return null;
    }
    const known = typeof env === 'string' ? ENVIRONMENT_CONFIGS.get(env) : undefined;
    if (known === undefined) {
        const message = typeof env === 'string' ? suggestion(env, names) : `allowed: ${names.join(', ')}`;
        report(['env'], `there is no environment ${typeof env === 'string' && isLine(env) ? env : show(env)}; ${message}`);
        return null;
    }
    const given = task.get('config');
    if (given === undefined && known.name !== 'text')
        report(['config'], 'is required');
    else {
        for (const problem of known.check(given ?? new Map()))
            report(configPath(problem.path), problem.message);
    }
    return known.name;
}
// An environment names its fields from `config` on, whether or not it says so.
function configPath(path) {
    if (path === '')
        return ['config'];
    return path === 'config' || /^config[.[]/.test(path) ? path.split('.') : ['config', ...path.split('.')];
}
