// What became of one sample, as the lane carries it, and what its samples share: texts that both sides read with the
// same eyes, because a worker may be of another build than the gateway.
import { z } from 'zod';
import { messageOf } from '../errors.js';
import { dumpJson, parseJson } from '../json/json.js';
import { isMap } from '../json/value.js';
import { causeSchema, detailOf, diagnosticSchema } from '../outcome.js';
const schema = z.discriminatedUnion('status', [
    z.strictObject({
        status: z.literal('completed'),
        reward: z.number(),
        steps: z.int().nonnegative(),
        diagnostics: z.array(diagnosticSchema),
    }),
    z.strictObject({ status: z.literal('no_result'), cause: causeSchema, detail: z.string() }),
]);
export function dumpOutcome(outcome) {
    return JSON.stringify(outcome);
}
/** What cannot be read is no result, never a reward. */
export function readOutcome(text) {
    try {
        return schema.parse(JSON.parse(text));
    }
    catch (error) {
        return {
            status: 'no_result',
            cause: 'environment_error',
            detail: detailOf(`a worker's answer that cannot be read: ${messageOf(error)}`),
        };
    }
}
export function dumpAsked({ name, config, seed }) {
    const value = new Map([
        ['name', name],
        ['config', config],
        ['seed', seed],
    ]);
    return dumpJson(value, { compact: true });
}
/** Null where it is none. */
export function readAsked(text) {
    const value = parseJson(text);
    if (!isMap(value))
        return null;
    const name = value.get('name');
    const config = value.get('config') ?? null;
    const seed = value.get('seed');
    return typeof name === 'string' && isMap(config) && typeof seed === 'bigint' ? { name, config, seed } : null;
}
