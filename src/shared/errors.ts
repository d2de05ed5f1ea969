// Every failure that a user meets has a code, what happened, and what to do next.
// `FarmError` is for bad input and missing parts (it ends a command with `exit`); what goes wrong inside a
// rollout is never thrown but returned as an outcome (outcome.ts). Only bugs are other exceptions.

/** Exit codes of the command line (INTERFACE: Exit codes). */
export const EXIT = {
  ok: 0,
  unsound: 1,
  input: 2,
  missing: 3,
  /** Ctrl-C; where a shell would say so, SIGTERM and a terminal that closes. */
  interrupted: 130,
  terminated: 143,
  hungUp: 129,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export class FarmError extends Error {
  /** Stable, for programs: `spec_invalid`, `redis_unreachable`, … */
  readonly code: string;
  readonly exit: ExitCode;
  /** The next step, in one sentence. */
  readonly hint: string | undefined;
  constructor(code: string, message: string, options: { exit: ExitCode; hint?: string; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'FarmError';
    this.code = code;
    this.exit = options.exit;
    this.hint = options.hint;
  }
}

/** Unusable input: argument, spec, file, cursor, unknown run (exit 2). */
export function inputError(code: string, message: string, hint?: string): FarmError {
  return new FarmError(code, message, { exit: EXIT.input, ...(hint === undefined ? {} : { hint }) });
}

/** Something needed is not there or not usable (exit 3): says what, and how to get it. */
export function missingError(code: string, message: string, hint?: string, cause?: unknown): FarmError {
  return new FarmError(code, message, { exit: EXIT.missing, ...(hint === undefined ? {} : { hint }), cause });
}

/** The text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's code of an error (`ENOENT`), or empty. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
