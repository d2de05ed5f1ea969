// A request that is not served, as the caller is told it: status, code, message, next step. `/get_reward` says the same
// in the words of the Python library; everything else of this house in its own.

import { EXIT, FarmError } from '../shared/errors.ts';

export class HttpProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, message: string, hint?: string, headers: Record<string, string> = {}) {
    super(message);
    this.name = 'HttpProblem';
    this.status = status;
    this.code = code;
    this.hint = hint ?? usualHint(status);
    this.headers = headers;
  }

  body(): string {
    const { code, message, hint } = this;
    return `${JSON.stringify({ error: { code, message, hint } })}\n`;
  }
}

/** The next step where the message says all that is special. */
function usualHint(status: number): string {
  if (status === 404 || status === 405) return 'GET / shows what is there';
  if (status >= 500) return 'try again; /readyz says what is missing';
  return 'correct the request; the README’s “A trainer’s rewards” has the calls and their fields';
}

export function busy(message: string, retryAfterS: number): HttpProblem {
  return new HttpProblem(429, 'busy', message, `try again in ${retryAfterS} s`, { 'retry-after': String(retryAfterS) });
}

const STATUS: Record<string, number> = {
  unknown_run: 404,
  spec_changed: 409,
  key_changed: 409,
  run_busy: 409,
  ledger_version: 409,
};

/** A failure that a user can mend, as a problem; null for anything else. */
export function problemOf(error: unknown): HttpProblem | null {
  if (error instanceof HttpProblem) return error;
  if (!(error instanceof FarmError)) return null;
  const status = STATUS[error.code] ?? (error.exit === EXIT.input ? 400 : 503);
  return new HttpProblem(status, error.code, error.message, error.hint);
}
