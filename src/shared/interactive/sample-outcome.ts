// What became of one sample, as the lane carries it, and what its samples share: texts that both sides read with the
// same eyes, because a worker may be of another build than the gateway.

import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { dumpJson, parseJson } from '../json/json.ts';
import { isMap, type Value, type ValueMap } from '../json/value.ts';
import { type Cause, causeSchema, type Diagnostic, detailOf, diagnosticSchema } from '../outcome.ts';

export type SampleOutcome =
  | { status: 'completed'; reward: number; steps: number; diagnostics: Diagnostic[] }
  | { status: 'no_result'; cause: Cause; detail: string };

const schema = z.discriminatedUnion('status', [
  z.strictObject({
    status: z.literal('completed'),
    reward: z.number(),
    steps: z.int().nonnegative(),
    diagnostics: z.array(diagnosticSchema),
  }),
  z.strictObject({ status: z.literal('no_result'), cause: causeSchema, detail: z.string() }),
]);

export function dumpOutcome(outcome: SampleOutcome): string {
  return JSON.stringify(outcome);
}

/** What cannot be read is no result, never a reward. */
export function readOutcome(text: string): SampleOutcome {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    return {
      status: 'no_result',
      cause: 'environment_error',
      detail: detailOf(`a worker's answer that cannot be read: ${messageOf(error)}`),
    };
  }
}

/** The environment that a call's completions are scored in. */
export interface AskedEnvironment {
  name: string;
  /** Checked and resolved. */
  config: ValueMap;
  seed: bigint;
}

export function dumpAsked({ name, config, seed }: AskedEnvironment): string {
  const value = new Map<string, Value>([
    ['name', name],
    ['config', config],
    ['seed', seed],
  ]);
  return dumpJson(value, { compact: true });
}

/** Null where it is none. */
export function readAsked(text: string): AskedEnvironment | null {
  const value = parseJson(text);
  if (!isMap(value)) return null;
  const name = value.get('name');
  const config = value.get('config') ?? null;
  const seed = value.get('seed');
  return typeof name === 'string' && isMap(config) && typeof seed === 'bigint' ? { name, config, seed } : null;
}
