// Which version of the ledger's layout this farm reads and writes (version.lua says the same to the scripts). A run that
// another version opened is refused: finished by the farm that opened it, or removed; what its fields mean is never guessed.

import { FarmError, inputError } from '../errors.ts';

/** Raised with every change of keys, fields, settings or entries that an older farm would misread. */
export const LEDGER_VERSION = '2';
const REFUSED = /^LEDGER_VERSION (\S+)/;

/** Throws FarmError (exit 2) for the fields of a run of another version; a run that is not known passes. */
export function requireVersion(run: string, fields: Record<string, string | undefined>): void {
  const version = fields.state === undefined ? LEDGER_VERSION : (fields.version ?? '1');
  if (version !== LEDGER_VERSION) throw otherVersion(run, version);
}

/** What a script's refusal means; anything else as it came. */
export function refusalOf(run: string, error: unknown): unknown {
  const version = error instanceof Error ? REFUSED.exec(error.message)?.[1] : undefined;
  return version === undefined ? error : otherVersion(run, version);
}

export function isOtherVersion(error: unknown): boolean {
  return error instanceof FarmError && error.code === 'ledger_version';
}

function otherVersion(run: string, version: string): FarmError {
  return inputError(
    'ledger_version',
    `run ${run} was opened by another version of the farm: its ledger has layout ${version.slice(0, 20)}, and this one reads ${LEDGER_VERSION}`,
    `end it with the version that opened it; or remove it with ./farm rm ${run}, or use another --run-id`,
  );
}
