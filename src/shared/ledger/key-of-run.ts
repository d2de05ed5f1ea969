// Which AmberTrace key a run is played with: the one that it was opened with, as its ledger has it, for as long as there
// is something to play.

import { type FarmError, inputError } from '../errors.ts';
import { shortKey } from '../manning.ts';
import type { Redis } from '../redis/client.ts';
import type { VerifierConfig } from '../spec/verifier-config.ts';
import { requireVersion } from './ledger-version.ts';
import { type RunSettings, readSettings, wantedKey } from './run-settings.ts';
import { runKey } from './script.ts';

export interface RunKey {
  /** Fingerprint of the key without which a worker leaves the run's members alone; null: none is needed. */
  wanted: string | null;
  /** Of the one that there is here, and that workers from here would have. */
  held: string | null;
}

/** Throws FarmError (exit 2) on a run of another version. */
export async function keyOfRun(
  redis: Redis,
  run: string,
  verifier: VerifierConfig | null,
  apiKey: string | null,
): Promise<RunKey> {
  const held = wantedKey(verifier, apiKey);
  // Where the run was opened with a verifier, its spec is another one now: that is for the opening to say.
  if (verifier === null) return { wanted: null, held };
  const names = ['state', 'version', 'settings', 'manifest'] as const;
  const values = await redis.hmget(`${runKey(run)}:run`, ...names);
  const fields = Object.fromEntries(names.map((name, i) => [name, values[i] ?? undefined]));
  requireVersion(run, fields);
  if (fields.settings === undefined) return { wanted: held, held };
  return { wanted: fields.manifest === undefined ? readSettings(fields.settings).keyFingerprint : null, held };
}

/** Throws FarmError (exit 2) where workers with this key would leave the opened run's members alone. */
export function refuseOtherKey(
  run: string,
  { keyFingerprint }: Pick<RunSettings, 'keyFingerprint'>,
  key: string | null,
) {
  if (keyFingerprint !== null && keyFingerprint !== key) throw keyChanged(run, { wanted: keyFingerprint, held: key });
}

export function keyChanged(run: string, { wanted, held }: RunKey): FarmError {
  const here = held === null ? 'and there is none here' : `and the one here is ${shortKey(held)}`;
  return inputError(
    'key_changed',
    `run ${run} was opened with an AmberTrace key whose fingerprint is ${shortKey(wanted)}, ${here}: its workers would leave its members alone`,
    'set AMBERTRACE_API_KEY to that key; or start workers that hold it (./farm up) on the same Redis; or use another --run-id',
  );
}
