// What every role needs to know of a run, kept as one text in its ledger: limits of its boxes, where its store is, how
// it is verified, and which secrets a worker must hold to touch it. Small: whatever is large is a claim.

import { z } from 'zod';
import { sha256 } from '../claim.ts';
import { inputError, messageOf } from '../errors.ts';
import { CONVENTIONS, type RunIdentity } from '../group.ts';
import { planRefSchema } from '../plan/plan.ts';
import { ISOLATIONS } from '../spec/spec.ts';
import type { VerifierConfig } from '../spec/verifier-config.ts';

export const runSettingsSchema = z.strictObject({
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

/** What the run's records are rendered with. */
export function identityOf(run: string, { incarnation, convention }: RunSettings): RunIdentity {
  return { run, incarnation, convention };
}

/** Enough to tell two keys apart, and nothing to find one by. */
export function fingerprint(key: string | null): string | null {
  return key === null ? null : sha256(`rollout-farm key ${key}`).slice(0, 16);
}

/** Of the key that a worker has to hold to touch a run with this verifier; null where any worker may. */
export function wantedKey(verifier: VerifierConfig | null, key: string | null): string | null {
  return verifier === null ? null : fingerprint(key);
}

export function writeSettings(settings: RunSettings): string {
  return JSON.stringify(settings, (_, value) => (typeof value === 'bigint' ? { $int: value.toString() } : value));
}

/** Throws FarmError (exit 2) on a text that is not ours or of another version. */
export function readSettings(text: string): RunSettings {
  const isInt = (value: unknown): value is { $int: string } =>
    typeof value === 'object' && value !== null && '$int' in value;
  const read = (): unknown =>
    JSON.parse(text, (_, value: unknown) => (isInt(value) ? BigInt(value.$int) : value)) as unknown;
  try {
    return runSettingsSchema.parse(read());
  } catch (error) {
    const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
    const what = issue ? `${issue.path.join('.') || 'settings'}: ${issue.message}` : messageOf(error);
    throw inputError(
      'run_settings',
      `the settings that the ledger has of the run are not such as this version of the farm writes (${what})`,
      'end the run with the version that opened it; or remove it with ./farm rm RUN, and run it anew',
    );
  }
}

/** Where a run's store is, also where the rest of its settings is another version's; null if it does not say. */
export function storeAddressOf(text: string | null): string | null {
  try {
    return z.looseObject({ store: z.string() }).parse(JSON.parse(text ?? '')).store;
  } catch {
    return null;
  }
}
