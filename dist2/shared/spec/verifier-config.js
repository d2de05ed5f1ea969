// The verifier's part of a spec: ambertrace-rlvr's sections `domain`, `reward` and `verifier`, with that library's
// names, defaults and meaning; `training`, `dataset` and `eval` are checked as it checks them, and kept for trainers.
// Stricter than the library: numbers that are not finite and a clip out of order are refused, and a key in the file.
import { isMap, pyTruthy } from '../json/value.js';
import { toFloat, toInteger } from '../python/number.js';
import { PatternFault, translatePattern } from '../python/regex.js';
import { lengthOf, repr, str, typeName } from '../python/text.js';
export const VERIFIER_SECTIONS = ['domain', 'reward', 'verifier', 'training', 'dataset', 'eval'];
const DEFAULT_BASE_URL = 'https://app.ambertrace.ai';
const DEFAULT_WEIGHTS = {
    format: 0.1,
    certified: 0.5,
    correctness: 1,
    graded: 0.3,
    rejected_penalty: 0.2,
    unsupported_penalty: 0.3,
    consistency: 0,
};
const DEFAULT_CLIP = [-1, 2];
const TEMPLATE = 'Classify: {facts}';
export const ANSWER_PATTERN = '(?im)^\\s*answer\\s*:\\s*(.+?)\\s*$';
/** The library's own. */
export const FACT_PATTERN = '(?im)^\\s*fact\\s+([\\w.-]+)\\s*:\\s*(.+?)\\s*$';
/** Resolves the six sections of `root` (other keys are not looked at). Null where there is no `domain`. Paths in problems are dotted from the root. */
export function resolveVerifier(root, baseUrl) {
    const reader = new Reader();
    for (const [name, check] of [
        ['training', training],
        ['dataset', dataset],
        ['eval', evaluation],
    ]) {
        const section = root.get(name);
        if (section !== undefined && section !== null)
            check(reader, section);
    }
    const reward = reader.section(root, 'reward', ['shaper', 'weights', 'clip']);
    const verifier = reader.section(root, 'verifier', [
        'batch_size',
        'max_concurrency',
        'cache',
        'floor',
        'requests_per_second',
    ]);
    const shaper = str(reward.get('shaper') ?? (reward.has('shaper') ? null : 'default'));
    if (shaper !== 'default')
        reader.fault('reward.shaper', `unknown shaper ${repr(shaper)}; known: default`);
    const clip = clipOf(reader, reward);
    const config = {
        ...domainOf(reader, root, baseUrl),
        weights: weightsOf(reader, reward.get('weights') ?? null),
        clip,
        floor: verifier.has('floor') ? reader.number('verifier.floor', verifier.get('floor')) : clip[0],
        batchSize: Number(reader.integer('verifier.batch_size', verifier, 'batch_size', 32n)),
        maxConcurrency: Number(reader.integer('verifier.max_concurrency', verifier, 'max_concurrency', 16n)),
        cache: verifier.has('cache') ? pyTruthy(verifier.get('cache')) : true,
        requestsPerSecond: rateOf(reader, verifier),
    };
    if (!root.has('domain'))
        return { config: null, problems: reader.problems.filter((p) => !p.path.startsWith('domain')) };
    return { config: reader.problems.length > 0 ? null : config, problems: reader.problems };
}
/** One request in a quarter of an hour to a thousand a second: beyond that a rate is a mistake, or no bound. */
const RATE = { least: 0.001, most: 1_000 };
function rateOf(reader, verifier) {
    const value = verifier.get('requests_per_second') ?? null;
    if (value === null)
        return null;
    const rate = typeof value === 'bigint' || typeof value === 'number' ? Number(value) : Number.NaN;
    if (rate >= RATE.least && rate <= RATE.most)
        return rate;
    reader.fault('verifier.requests_per_second', `must be null or a number from ${RATE.least} to ${RATE.most}`);
    return null;
}
class Reader {
    problems = [];
    fault(path, message) {
        this.problems.push({ path, message });
    }
    section(root, name, known) {
        const value = root.get(name);
        if (value === undefined || value === null)
            return new Map();
        if (!isMap(value)) {
            this.fault(name, `must be a mapping, not ${typeName(value)}`);
            return new Map();
        }
        this.known(value, name, known);
        return value;
    }
    known(map, where, known) {
        for (const key of map.keys())
            if (!known.includes(key))
                this.fault(`${where}.${key}`, `unknown key; allowed: ${[...known].sort().join(', ')}`);
    }
    number(path, value) {
        const number = toFloat(value);
        if (number === null)
            this.fault(path, `must be a number, got ${repr(value ?? null)}`);
        else if (!Number.isFinite(number))
            this.fault(path, `must be a finite number, got ${repr(number)}`);
        return number ?? 0;
    }
    integer(path, map, key, fallback) {
        if (!map.has(key))
            return fallback;
        const value = map.get(key);
        const integer = toInteger(value);
        if (integer === null)
            this.fault(path, `must be an integer, got ${shortRepr(value ?? null)}`);
        return integer ?? fallback;
    }
}
function shortRepr(value) {
    const text = repr(value);
    return lengthOf(text) > 80 ? `${text.slice(0, 79)}…` : text;
}
function domainOf(reader, root, baseUrl) {
    const given = root.get('domain');
    if (!isMap(given)) {
        reader.fault('domain', 'must be a mapping');
        return { platformId: 0n, baseUrl: '', parser: parserOf(reader, 'json_block', new Map()) };
    }
    const known = ['platform_id', 'base_url', 'query_template', 'parser', 'parser_args'];
    if (given.has('api_key'))
        reader.fault('domain.api_key', 'a key must not stand in a file; give it in the environment as AMBERTRACE_API_KEY');
    reader.known(given, 'domain', [...known, 'api_key']);
    if (!given.has('platform_id'))
        reader.fault('domain.platform_id', 'is required');
    const url = given.has('base_url') ? str(given.get('base_url') ?? null) : (baseUrl ?? DEFAULT_BASE_URL);
    if (hostOf(url) === 'api.ambertrace.ai')
        reader.fault('domain.base_url', 'api.ambertrace.ai does not serve the API; it is at https://app.ambertrace.ai');
    const name = str(given.has('parser') ? (given.get('parser') ?? null) : 'json_block');
    const args = argumentsOf(reader, given.get('parser_args'));
    const template = given.get('query_template');
    if (template !== undefined && template !== null && !args.has('query_template'))
        args.set('query_template', str(template));
    return {
        platformId: reader.integer('domain.platform_id', given, 'platform_id', 0n),
        baseUrl: url.replace(/\/+$/, ''),
        parser: parserOf(reader, name, args),
    };
}
function hostOf(url) {
    for (const text of [url, `http://${url}`]) {
        try {
            const host = new URL(text).hostname;
            if (host)
                return host.toLowerCase();
        }
        catch {
            // without a scheme: try again with one
        }
    }
    return '';
}
// `dict(parser_args or {})`: a mapping, nothing, or a list of pairs.
function argumentsOf(reader, given) {
    if (!pyTruthy(given))
        return new Map();
    if (isMap(given))
        return new Map(given);
    const pairs = Array.isArray(given) ? given.map((pair) => (typeof pair === 'string' ? [...pair] : pair)) : [];
    if (pairs.length > 0 && pairs.every((pair) => Array.isArray(pair) && pair.length === 2))
        return new Map(pairs.map((pair) => [str(pair[0] ?? null), pair[1] ?? null]));
    reader.fault('domain.parser_args', 'must be a mapping');
    return new Map();
}
function parserOf(reader, name, args) {
    const known = {
        json_block: ['answer_key', 'facts_key', 'relations_key'],
        regex_block: ['answer_pattern', 'fact_pattern'],
    };
    if (name !== 'json_block' && name !== 'regex_block') {
        reader.fault('domain.parser', `unknown parser ${shortRepr(name)}; known: json_block, regex_block`);
        return parserOf(reader, 'json_block', new Map());
    }
    reader.known(args, 'domain.parser_args', [...known[name], 'query_template', 'block_pattern']);
    let broken = args.has('block_pattern') ? 'block_pattern is not a compiled pattern' : null;
    const text = (key, fallback) => {
        const value = args.has(key) ? args.get(key) : fallback;
        if (typeof value === 'string')
            return value;
        broken ??= `${key} is not text`;
        return fallback;
    };
    const queryTemplate = text('query_template', TEMPLATE);
    if (name === 'json_block') {
        const key = (which, fallback) => {
            const value = args.has(which) ? (args.get(which) ?? null) : fallback;
            if (typeof value === 'object' && value !== null)
                broken ??= `${which} cannot be a key`;
            return typeof value === 'string' ? value : null;
        };
        const keys = {
            answerKey: key('answer_key', 'classification'),
            factsKey: key('facts_key', 'facts'),
            relationsKey: pyTruthy(args.get('relations_key') ?? true) ? key('relations_key', 'relations') : null,
        };
        return { kind: name, ...keys, queryTemplate, broken };
    }
    const pattern = (which, fallback) => {
        const source = text(which, fallback);
        try {
            translatePattern(source);
        }
        catch (error) {
            if (!(error instanceof PatternFault))
                throw error;
            reader.fault(`domain.parser_args.${which}`, error.message);
        }
        return source;
    };
    const answerPattern = pattern('answer_pattern', ANSWER_PATTERN);
    const factPattern = pattern('fact_pattern', FACT_PATTERN);
    return { kind: name, answerPattern, factPattern, queryTemplate, broken };
}
function weightsOf(reader, given) {
    const weights = { ...DEFAULT_WEIGHTS };
    if (given === null)
        return weights;
    if (!isMap(given)) {
        reader.fault('reward.weights', `must be a mapping, not ${typeName(given)}`);
        return weights;
    }
    reader.known(given, 'reward.weights', Object.keys(weights));
    for (const [name, value] of given)
        if (Object.hasOwn(weights, name))
            weights[name] = reader.number(`reward.weights.${name}`, value);
    return weights;
}
function clipOf(reader, reward) {
    if (!reward.has('clip'))
        return DEFAULT_CLIP;
    const given = reward.get('clip') ?? null;
    if (!Array.isArray(given) || given.length !== 2) {
        reader.fault('reward.clip', `must be a pair [low, high], got ${shortRepr(given)}`);
        return DEFAULT_CLIP;
    }
    const low = reader.number('reward.clip', given[0]);
    const high = reader.number('reward.clip', given[1]);
    if (low > high)
        reader.fault('reward.clip', `the low end ${repr(low)} is above the high end ${repr(high)}`);
    return [low, high];
}
function training(reader, given) {
    if (!isMap(given)) {
        reader.fault('training', `must be a mapping, not ${typeName(given)}`);
        return;
    }
    for (const key of ['framework', 'model'])
        if (!given.has(key))
            reader.fault(`training.${key}`, 'is required');
    reader.integer('training.group_size', given, 'group_size', 8n);
    if (given.has('learning_rate'))
        reader.number('training.learning_rate', given.get('learning_rate'));
}
function dataset(reader, given) {
    if (!isMap(given)) {
        reader.fault('dataset', `must be a mapping, not ${typeName(given)}`);
        return;
    }
    reader.known(given, 'dataset', ['path']);
    if (!given.has('path'))
        reader.fault('dataset.path', 'is required');
}
function evaluation(reader, given) {
    if (!isMap(given)) {
        reader.fault('eval', `must be a mapping, not ${typeName(given)}`);
        return;
    }
    reader.known(given, 'eval', ['path', 'probes']);
    if (pyTruthy(given.get('probes')) && !Array.isArray(given.get('probes')))
        reader.fault('eval.probes', 'must be a list');
}
