// What became of a member. `completed` has a finite reward and no cause; `no_result` has a cause and no reward
// field at all, so that an infrastructure failure can never be taken for a number (law 1).
import { z } from 'zod';
import { claimSchema } from './claim.js';
import { GRADE_LEVELS } from './sandbox.js';
/** Why a member has no result (INTERFACE, group record). */
export const CAUSES = [
    'group_deadline',
    'group_closed',
    'not_started',
    'sandbox_lost',
    'sandbox_start',
    'environment_error',
    'environment_silent',
    'policy_unavailable',
    'policy_rejected',
    'verifier_unavailable',
    'misconfigured',
    'budget',
    'cancelled',
    'replay_mismatch',
    'poison',
];
export const causeSchema = z.enum(CAUSES);
/** What befell the action itself, in a completed member. */
export const DIAGNOSTICS = ['timeout', 'memory', 'pids', 'output', 'disk', 'signal', 'exit', 'escape'];
export const diagnosticSchema = z.enum(DIAGNOSTICS);
/** A member is tried so often; attempts that are not charged (a death, a drain, a lost Redis) do not count. */
export const MAX_ATTEMPTS = 3;
const finite = z.number();
/** Ties a reward to what produced it. Every field is bound by replay or by a hash in the store. */
export const certificateSchema = z.strictObject({
    trajectory_sha256: z.string(),
    env: z.string(),
    /** Image id of the engine, null where no sandbox was opened. */
    image: z.string().nullable(),
    /** Hash of the runner inside the box, null without one. */
    runner: z.string().nullable(),
    /** `fresh`: a box of its own. `recycled`: one that episodes of the run had in turn, reset between them.
     *  `subprocess`: no isolation, asked for by name. `none`: nothing untrusted ran. */
    isolation: z.enum(['fresh', 'recycled', 'subprocess', 'none']),
    /** `apart`: judged in a process and by a user that the judged code has no way into. `in-process`: it shares a process with
     *  its check, which came to its end. `exit`: a command's status alone. `outside`: compared outside the sandbox. `verifier`. */
    grade: z.enum([...GRADE_LEVELS, 'outside', 'verifier']),
    /** A prepared interpreter made the grade; absent: none did. */
    warm: z.literal('python3').optional(),
    reward: finite,
    report_sha256: z.string().nullable(),
});
/** The member's record as it is accepted by the ledger; `advantage` is added where a group is rendered. */
export const completedSchema = z.strictObject({
    member: z.int().nonnegative(),
    status: z.literal('completed'),
    reward: finite,
    components: z.record(z.string(), finite),
    attempts: z.int().positive(),
    steps: z.int().nonnegative(),
    /** From begin to outcome; waits for slots and box starts left out. */
    seconds: finite,
    diagnostics: z.array(diagnosticSchema),
    trajectory: claimSchema,
    /** The verifier's normalised answer, where there was one. */
    report: claimSchema.optional(),
    certificate: certificateSchema,
});
export const noResultSchema = z.strictObject({
    member: z.int().nonnegative(),
    status: z.literal('no_result'),
    cause: causeSchema,
    detail: z.string(),
    attempts: z.int().nonnegative(),
});
export const memberSchema = z.discriminatedUnion('status', [completedSchema, noResultSchema]);
/** Details are for people: one line, bounded. */
export function detailOf(text) {
    const line = text.replace(/\s+/g, ' ').trim();
    return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}
