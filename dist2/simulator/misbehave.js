// How the stand-in misbehaves when told to: delays, and faults of named kinds on some of the calls. Counts and a
// small seeded generator decide which calls, so that the same script gives the same faults.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { inputError, messageOf } from '../shared/errors.js';
const FAULTS = [
    'rate_limit',
    'proxy_503',
    'garbage',
    'cut_body',
    'hang',
    'wrong_schema_version',
    'unauthorized',
    'forbidden',
    'not_found',
    'internal_error',
    'backend_unavailable',
    'unavailable',
    'too_big',
    'no_batch',
    'not_understood',
    'reset',
];
const faultSchema = z.strictObject({
    kind: z.enum(FAULTS),
    /** Which calls: the first n, then every nth, else each with this probability (default: all). */
    first: z.int().nonnegative().optional(),
    every: z.int().positive().optional(),
    probability: z.number().min(0).max(1).optional(),
    /** Only calls whose body has this text in it: what spoils a call, wherever it travels. */
    match: z.string().min(1).optional(),
    /** Only these calls. Default both. */
    on: z.enum(['query', 'query-batch']).optional(),
    /** In a batch: this item alone fails, the others are answered. */
    item: z.int().nonnegative().optional(),
    retry_after_s: z.number().nonnegative().default(1),
});
const misbehaveSchema = z.strictObject({
    latency_ms: z.number().nonnegative().default(0),
    /** Above this many queries in a batch the answer is 413. */
    max_batch: z.int().positive().optional(),
    seed: z.int().nonnegative().default(1),
    fail: z.array(faultSchema).default([]),
});
/** JSON, or `@FILE`. */
export async function readMisbehave(text) {
    if (text === undefined)
        return misbehaveSchema.parse({});
    const file = text.startsWith('@') ? text.slice(1) : null;
    const shown = file ?? '--misbehave';
    let data;
    try {
        data = JSON.parse(file === null ? text : await readFile(file, 'utf8'));
    }
    catch (error) {
        throw inputError('misbehave_invalid', `${shown}: ${messageOf(error)}`);
    }
    const read = misbehaveSchema.safeParse(data);
    if (read.success)
        return read.data;
    const issue = read.error.issues[0];
    throw inputError('misbehave_invalid', `${shown}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
}
/** Decides, call by call, which fault (if any) applies. */
export class Trouble {
    rules;
    counts;
    state;
    constructor(misbehave) {
        this.rules = misbehave.fail;
        this.counts = this.rules.map(() => 0);
        this.state = misbehave.seed;
    }
    next(path, body) {
        for (const [i, rule] of this.rules.entries()) {
            if (rule.on !== undefined && rule.on !== path)
                continue;
            if (rule.match !== undefined && !body.includes(rule.match))
                continue;
            const count = (this.counts[i] ?? 0) + 1;
            this.counts[i] = count;
            const applies = rule.first !== undefined
                ? count <= rule.first
                : rule.every !== undefined
                    ? count % rule.every === 0
                    : this.random() < (rule.probability ?? 1);
            if (applies)
                return rule;
        }
        return null;
    }
    random() {
        this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
        return this.state / 2 ** 32;
    }
}
