// A line of an attacks file, and whether what became of it is what it expects.

import { z } from 'zod';

export const attackSchema = z.object({
  id: z.string(),
  env: z.string(),
  config: z.record(z.string(), z.unknown()),
  actions: z.array(z.unknown()).min(1),
  expect: z.object({
    /** Also of a `best_effort` attack: what the farm can hold, it holds. */
    max_reward: z.number(),
    max_seconds: z.number().optional(),
    min_steps: z.number().optional(),
    diagnostic: z.string().optional(),
    /** No result will do too. */
    any_error: z.boolean().optional(),
  }),
});
export type Attack = z.infer<typeof attackSchema>;

const memberSchema = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('completed'),
    reward: z.number(),
    steps: z.number(),
    seconds: z.number(),
    diagnostics: z.array(z.string()),
  }),
  z.object({ status: z.literal('no_result'), cause: z.string(), detail: z.string() }),
]);
type MemberOf = z.infer<typeof memberSchema>;
export const groupSchema = z.object({ task_id: z.string(), members: z.array(memberSchema) });
export type GroupOf = z.infer<typeof groupSchema>;

export const HONEST = {
  env: 'code-task',
  config: {
    files: { 'solution.py': 'def double(n):\n    raise NotImplementedError\n' },
    task: 'Complete double: it returns n times two.',
    check: {
      command: ['python3', 'check.py'],
      files: { 'check.py': 'import solution\nassert solution.double(21) == 42\n' },
      timeout: 5,
    },
  },
  actions: [{ 'solution.py': 'def double(n):\n    return 2 * n\n' }] as unknown[],
};

/** Start, teardown and a slow machine, on top of every step's own time. */
const SLACK_S = 4;

export function expectationFaults(attack: Attack, member: MemberOf | undefined): string[] {
  const { expect } = attack;
  if (member === undefined) return ['no record'];
  if (member.status === 'no_result')
    return expect.any_error === true ? [] : [`the action's own doing must be completed (${member.detail})`];
  const faults: string[] = [];
  const most = expect.max_seconds ?? timeoutOf(attack) * attack.actions.length + SLACK_S;
  if (member.reward > expect.max_reward) faults.push(`it may earn ${expect.max_reward} at most`);
  if (member.seconds > most) faults.push(`it took ${member.seconds} s, and may take ${most}`);
  if (member.steps < (expect.min_steps ?? 0)) faults.push(`${member.steps} steps, where ${expect.min_steps} are due`);
  if (expect.diagnostic !== undefined && !member.diagnostics.includes(expect.diagnostic))
    faults.push(`its diagnostics do not name ${expect.diagnostic}`);
  return faults;
}

function timeoutOf({ config }: Attack): number {
  const check = config.check;
  const holder = typeof check === 'object' && check !== null ? (check as Record<string, unknown>) : config;
  return typeof holder.timeout === 'number' ? holder.timeout : 10;
}
