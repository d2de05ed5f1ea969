// What every role needs to know of a run, kept as one text in its ledger: limits of its boxes, where its store is, how
// it is verified, and which secrets a worker must hold to touch it. Small: whatever is large is a claim.

import { z } from 'zod';
import { sha256 } from '../claim.ts';
import { CONVENTIONS } from '../group.ts';
import { planRefSchema } from '../plan/plan.ts';
import { ISOLATIONS } from '../spec/spec.ts';
import type { VerifierConfig } from '../spec/verifier-config.ts';

/** Of the ledger's keys and scripts: one more where those of two versions cannot work on one run. */
export const LEDGER_SCHEMA = 1;

export const runSettingsSchema = z.strictObject({
  schema: z.literal(LEDGER_SCHEMA).default(LEDGER_SCHEMA),
  name: z.string(),
  incarnation: z.string(),
  convention: z.enum(CONVENTIONS),
  maxSteps: z.int().positive(),
  store: z.string(),
  plan: planRefSchema,
  /** sha256 of the resolved spec's document, and the claim's key under which the store has it. */
  documentSha256: z.string(),
  sandbox: z.strictObject({
    image: z.string(),
    memoryMb: z.number(),
    cpus: z.number(),
    pids: z.number(),
    tmpfsMb: z.number(),
    network: z.literal('none'),
    timeoutS: z.number(),
    outputKb: z.number(),
    exec: z.boolean().default(true),
    runtime: z.string().nullable().default(null),
    isolation: z.enum(ISOLATIONS).default('fresh'),
  }),
  pausedS: z.number(),
  inFlight: z.int().positive(),
  /** Distinct queries that the run may put to its verifier; null for no bound. */
  verifierCalls: z.int().nonnegative().nullable().default(null),
  verifier: z.custom<VerifierConfig>((value) => typeof value === 'object').nullable(),
  /** Fingerprint of the AmberTrace key that the run was submitted with: a worker with another one leaves its members alone. */
  keyFingerprint: z.string().nullable(),
});
export type RunSettings = z.infer<typeof runSettingsSchema>;

/** Enough to tell two keys apart, and nothing to find one by. */
export function fingerprint(key: string | null): string | null {
  return key === null ? null : sha256(`rollout-farm key ${key}`).slice(0, 16);
}

export function writeSettings(settings: RunSettings): string {
  return JSON.stringify(settings, (_, value) => (typeof value === 'bigint' ? { $int: value.toString() } : value));
}

/** Throws on a text that is not ours or of another version. */
export function readSettings(text: string): RunSettings {
  const isInt = (value: unknown): value is { $int: string } =>
    typeof value === 'object' && value !== null && '$int' in value;
  return runSettingsSchema.parse(JSON.parse(text, (_, value: unknown) => (isInt(value) ? BigInt(value.$int) : value)));
}
