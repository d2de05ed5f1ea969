// A request that is not served, as the caller is told it: status, code, message, next step. `/get_reward` says the same
// in the words of the Python library; everything else of this house in its own.

export class HttpProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, message: string, hint?: string, headers: Record<string, string> = {}) {
    super(message);
    this.name = 'HttpProblem';
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.headers = headers;
  }

  body(): string {
    const { code, message, hint } = this;
    return `${JSON.stringify({ error: { code, message, ...(hint === undefined ? {} : { hint }) } })}\n`;
  }
}

export function busy(message: string, retryAfterS: number): HttpProblem {
  return new HttpProblem(429, 'busy', message, `try again in ${retryAfterS} s`, { 'retry-after': String(retryAfterS) });
}
