// What `POST /v1/score` asks, read from its body: every fault of form is named (400) before anything is asked. What the
// completions contain is no fault: it earns what it earns.
import { dumpJson, JsonError } from '../shared/json/json.js';
import { isMap } from '../shared/json/value.js';
import { ENVIRONMENT_CONFIGS } from '../shared/spec/environment-config.js';
import { show, suggestion } from '../shared/spec/problem.js';
import { parseLarge } from './large-json.js';
import { decodeJsonBytes } from './mapping/json-bytes.js';
import { HttpProblem } from './problem.js';
const KEYS = ['config', 'prompts', 'completions', 'metadata', 'env', 'deadline_ms', 'on_no_result', 'parsed'];
export const DEFAULT_DEADLINE_MS = 300_000;
const MAX_DEADLINE_MS = 24 * 3600 * 1000;
export const MAX_ITEMS = 100_000;
/** Throws HttpProblem. */
export async function readScoreRequest(bytes) {
    const body = await readObject(bytes);
    for (const key of body.keys())
        if (!KEYS.includes(key))
            throw fault(shortKey(key), `is no field of this call; ${suggestion(shortKey(key), KEYS)}`);
    const completions = listOf(body, 'completions');
    if (completions === null)
        throw fault('completions', 'is required: a list of texts, or of lists of messages');
    if (completions.length > MAX_ITEMS)
        throw new HttpProblem(413, 'too_many_items', `${completions.length} completions in one request; at most ${MAX_ITEMS} are taken`, 'send several requests');
    const environment = environmentOf(body.get('env') ?? null);
    const prompts = listOf(body, 'prompts');
    if (prompts === null && environment === null)
        throw fault('prompts', 'is required: a list as long as completions');
    const metadata = listOf(body, 'metadata');
    for (const [name, list] of [
        ['prompts', prompts],
        ['metadata', metadata],
    ])
        if (list !== null && list.length !== completions.length)
            throw new HttpProblem(400, 'lengths_differ', `there are ${completions.length} completions and ${list.length} ${name}`, `give one of ${name} for each completion, in the same order`);
    for (const [i, prompt] of (prompts ?? []).entries())
        if (!isTextual(prompt))
            throw fault(`prompts[${i}]`, `must be a text or a list of messages, given ${show(prompt)}`);
    for (const [i, one] of (metadata ?? []).entries())
        if (one !== null && !isMap(one))
            throw fault(`metadata[${i}]`, `must be an object or null, given ${show(one)}`);
    return {
        config: textOrNull(body, 'config'),
        environment,
        items: completions.map((completion, i) => ({
            prompt: prompts?.[i] ?? '',
            completion,
            metadata: metadata?.[i] ?? null,
        })),
        deadlineMs: deadlineOf(body.get('deadline_ms') ?? null),
        onNoResult: onNoResultOf(body),
        parsed: flagOf(body, 'parsed'),
    };
}
async function readObject(bytes) {
    const text = decodeJsonBytes(bytes);
    if (text === null)
        throw new HttpProblem(400, 'not_utf8', 'the body is not UTF-8 text');
    let value;
    try {
        value = await parseLarge(text);
    }
    catch (error) {
        if (!(error instanceof JsonError))
            throw error;
        throw new HttpProblem(400, 'not_json', `the body is not JSON: ${error.message}`);
    }
    if (!isMap(value))
        throw new HttpProblem(400, 'wrong_shape', `the body must be an object, given ${show(value)}`);
    return value;
}
function listOf(body, key) {
    const value = body.get(key);
    if (value === undefined || (value === null && key !== 'completions'))
        return null;
    if (!Array.isArray(value))
        throw fault(key, `must be a list, given ${show(value)}`);
    return value;
}
function isTextual(prompt) {
    return prompt === null || typeof prompt === 'string' || (Array.isArray(prompt) && prompt.every(isMap));
}
function environmentOf(value) {
    if (value === null)
        return null;
    if (!isMap(value))
        throw fault('env', `must be an object with name, config and seed, given ${show(value)}`);
    for (const key of value.keys())
        if (!['name', 'config', 'seed'].includes(key))
            throw fault(`env.${shortKey(key)}`, 'is no field; allowed: name, config, seed');
    const name = value.get('name');
    const names = [...ENVIRONMENT_CONFIGS.keys()].filter((known) => known !== 'text');
    const kind = typeof name === 'string' && names.includes(name) ? ENVIRONMENT_CONFIGS.get(name) : undefined;
    if (typeof name !== 'string' || !kind)
        throw fault('env.name', `must be one of ${names.join(', ')}, given ${show(name)}`);
    const config = value.get('config') ?? new Map();
    const [problem] = kind.check(config);
    if (problem)
        throw fault(`env.${problem.path}`, problem.message);
    const seed = value.get('seed') ?? 0n;
    if (typeof seed !== 'bigint')
        throw fault('env.seed', `must be an integer, given ${show(seed)}`);
    return { name, config: kind.resolve(config), seed };
}
function deadlineOf(value) {
    if (value === null)
        return DEFAULT_DEADLINE_MS;
    const ms = typeof value === 'bigint' || typeof value === 'number' ? Number(value) : Number.NaN;
    if (!(ms > 0) || ms > MAX_DEADLINE_MS)
        throw fault('deadline_ms', `must be a number of milliseconds above 0 and at most ${MAX_DEADLINE_MS}, given ${show(value)}`);
    return ms;
}
function onNoResultOf(body) {
    const value = body.get('on_no_result') ?? 'null';
    if (value !== 'null' && value !== 'floor')
        throw fault('on_no_result', `must be "null" or "floor", given ${show(value)}`);
    return value;
}
function textOrNull(body, key) {
    const value = body.get(key) ?? null;
    if (value !== null && typeof value !== 'string')
        throw fault(key, `must be a text, given ${show(value)}`);
    return value;
}
function flagOf(body, key) {
    const value = body.get(key) ?? false;
    if (typeof value !== 'boolean')
        throw fault(key, `must be true or false, given ${show(value)}`);
    return value;
}
function fault(path, message) {
    return new HttpProblem(400, 'wrong_shape', `${path}: ${message}`);
}
/** A key as it may stand in a message. */
function shortKey(key) {
    return /^[\w.-]{1,60}$/.test(key) ? key : dumpJson(key.slice(0, 60));
}
