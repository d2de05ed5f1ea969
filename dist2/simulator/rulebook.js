// A rulebook: the declared fields of a platform, its rules and its decision list, as data. Built-in ones lie beside
// this file; others come from a file. A rule that reads a field which nothing declares or derives is refused.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { inputError, messageOf } from '../shared/errors.js';
import { JsonError, parseJson } from '../shared/json/json.js';
import { isMap } from '../shared/json/value.js';
const scalar = z.union([z.string(), z.number(), z.boolean()]);
const fieldSchema = z.discriminatedUnion('type', [
    z.strictObject({ name: z.string().min(1), type: z.literal('bool') }),
    z.strictObject({ name: z.string().min(1), type: z.literal('text'), values: z.array(z.string()).min(1) }),
    z.strictObject({ name: z.string().min(1), type: z.literal('number'), min: z.number(), max: z.number() }),
]);
const comparison = z.strictObject({
    field: z.string(),
    op: z.enum(['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'in']),
    value: z.union([scalar, z.array(scalar)]),
});
const condition = z.lazy(() => z.union([
    comparison,
    z.strictObject({ all: z.array(condition) }),
    z.strictObject({ any: z.array(condition) }),
    z.strictObject({ not: condition }),
]));
const ruleSchema = z.strictObject({
    name: z.string().min(1),
    /** `derive` sets a flag for later rules; `require` must hold; `deny` must not fire; `constraint` only shows whether it holds. */
    type: z.enum(['derive', 'constraint', 'require', 'deny']),
    /** What a derive rule sets: true where `when` holds, else false. */
    field: z.string().optional(),
    when: condition,
    description: z.string().default(''),
});
const decisionSchema = z.strictObject({
    decision: z.string().min(1),
    rule: z.string().min(1),
    /** Left out in the last entry: the decision where no other applies. */
    when: condition.optional(),
    permits: z.boolean().nullable().default(null),
    description: z.string().default(''),
});
const rulebookSchema = z.strictObject({
    name: z.string().min(1),
    platform_id: z.int().positive(),
    about: z.string().default(''),
    /** A fact given with less confidence is rejected. */
    min_confidence: z.number().min(0).max(1).default(0.5),
    fields: z.array(fieldSchema).min(1),
    rules: z.array(ruleSchema).default([]),
    decisions: z.array(decisionSchema).min(1),
});
export const BUILT_IN = ['grant-eligibility', 'air-track'];
/** A built-in rulebook by its name, else a file. */
export async function loadRulebook(nameOrFile) {
    const builtIn = BUILT_IN.includes(nameOrFile);
    let text;
    try {
        text = await readFile(builtIn ? new URL(`./rulebooks/${nameOrFile}.json`, import.meta.url) : nameOrFile, 'utf8');
    }
    catch (error) {
        throw inputError('rulebook_unreadable', `rulebook ${nameOrFile}: ${messageOf(error)}`, `built in are ${BUILT_IN.join(' and ')}; anything else is read as a file`);
    }
    return parseRulebook(text, nameOrFile);
}
export function parseRulebook(text, shown) {
    let data;
    try {
        data = plain(parseJson(text, { duplicates: 'error' }));
    }
    catch (error) {
        if (!(error instanceof JsonError))
            throw error;
        throw inputError('rulebook_invalid', `${shown}:${error.line}: ${error.message}`);
    }
    const read = rulebookSchema.safeParse(data);
    if (!read.success) {
        const issue = read.error.issues[0];
        throw inputError('rulebook_invalid', `${shown}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not a rulebook'}`);
    }
    const fault = faultOf(read.data);
    if (fault)
        throw inputError('rulebook_invalid', `${shown}: ${fault}`);
    return read.data;
}
function faultOf(book) {
    const known = new Set(book.fields.map((field) => field.name));
    if (known.size !== book.fields.length)
        return 'a field is declared twice';
    for (const rule of book.rules) {
        const unknown = fieldsOf(rule.when).find((name) => !known.has(name));
        if (unknown)
            return `rule '${rule.name}' reads '${unknown}', which nothing before it declares or derives`;
        if ((rule.type === 'derive') !== (rule.field !== undefined))
            return `rule '${rule.name}': 'field' belongs to a derive rule, and only there`;
        if (rule.field !== undefined)
            known.add(rule.field);
    }
    for (const [i, entry] of book.decisions.entries()) {
        if ((entry.when === undefined) !== (i === book.decisions.length - 1))
            return "every decision but the last has a 'when', and the last has none";
        const unknown = entry.when && fieldsOf(entry.when).find((name) => !known.has(name));
        if (unknown)
            return `decision '${entry.rule}' reads '${unknown}', which nothing declares or derives`;
    }
    return null;
}
function fieldsOf(when) {
    if ('field' in when)
        return [when.field];
    if ('not' in when)
        return fieldsOf(when.not);
    return ('all' in when ? when.all : when.any).flatMap(fieldsOf);
}
function plain(value) {
    if (typeof value === 'bigint')
        return Number(value);
    if (Array.isArray(value))
        return value.map(plain);
    return isMap(value) ? Object.fromEntries([...value].map(([key, x]) => [key, plain(x)])) : value;
}
