// Lossless JSON: a reader that keeps ints apart from floats, key order and the place of every fault, and a
// writer with the exact bytes of CPython's `json.dumps` (documented at docs.python.org/3/library/json.html):
// ASCII only, `", "` and `": "` separators, floats as `repr`, NaN and Infinity as those bare words.
// Reading refuses what `json.loads` refuses; a key given twice keeps the last value, or is an error if asked.

import { dumpText } from './text.ts';
import { compareCodePoints, isMap, type Value, type ValueMap } from './value.ts';

export class JsonError extends Error {
  readonly line: number;
  readonly column: number;
  readonly offset: number;
  /** It is JSON so far, and beyond what is read. */
  readonly beyond: boolean;
  constructor(message: string, text: string, offset: number, beyond = false) {
    const before = text.slice(0, offset);
    const line = before.split('\n').length;
    const column = offset - before.lastIndexOf('\n');
    super(`${message} (line ${line}, column ${column})`);
    this.line = line;
    this.column = column;
    this.offset = offset;
    this.beyond = beyond;
  }
}

export interface ReadOptions {
  /** A key given twice: `last` keeps the last value at the first position (Python), `error` refuses, `top` refuses in the outermost object only. Default `last`. */
  duplicates?: 'last' | 'error' | 'top';
  /** Nesting allowed before the text is refused; Python gives up near 1,000. Default 900. */
  maxDepth?: number;
  /** What is nested too deeply, or is an integer of too many digits: `refuse` (default), or `replace` by TOO_DEEP and by an infinite float. */
  beyond?: 'refuse' | 'replace';
}

/** Stands where a value was nested too deeply. */
export const TOO_DEEP = '(nested too deeply)';

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES: Record<string, string> = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
/** CPython refuses to turn longer digit runs into an int (sys.int_info.default_max_str_digits). */
const MAX_INT_DIGITS = 4300;

/** Parses one JSON text. Throws JsonError with line and column. */
export function parseJson(text: string, options: ReadOptions = {}): Value {
  const reader = new Reader(text, options);
  const value = reader.value(0);
  reader.space();
  if (reader.at < text.length) throw reader.fault('extra data after the value');
  return value;
}

class Reader {
  at = 0;
  readonly text: string;
  /** Objects at this depth or less refuse a key given twice. */
  private readonly strictDepth: number;
  private readonly maxDepth: number;
  private readonly replaces: boolean;

  constructor(text: string, options: ReadOptions) {
    this.text = text;
    this.strictDepth =
      options.duplicates === 'error' ? Number.POSITIVE_INFINITY : options.duplicates === 'top' ? 0 : -1;
    this.maxDepth = options.maxDepth ?? 900;
    this.replaces = options.beyond === 'replace';
  }

  fault(message: string, at = this.at): JsonError {
    return new JsonError(message, this.text, at);
  }

  private beyond(message: string): JsonError {
    return new JsonError(message, this.text, this.at, true);
  }

  space(): void {
    while (this.at < this.text.length) {
      const c = this.text.charCodeAt(this.at);
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) break;
      this.at++;
    }
  }

  value(depth: number): Value {
    if (depth > this.maxDepth) {
      if (!this.replaces) throw this.beyond(`nested deeper than ${this.maxDepth} levels`);
      this.skip();
      return TOO_DEEP;
    }
    this.space();
    const c = this.text[this.at];
    if (c === '{') return this.object(depth);
    if (c === '[') return this.array(depth);
    if (c === '"') return this.string();
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.number();
  }

  private number(): bigint | number {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (!match)
      throw this.fault(
        this.at >= this.text.length ? 'the text ends where a value should stand' : 'a value is expected here',
      );
    this.at += match[0].length;
    if (match[1] === undefined && match[2] === undefined) {
      const negative = match[0][0] === '-';
      if (match[0].length - (negative ? 1 : 0) > MAX_INT_DIGITS) {
        if (!this.replaces) throw this.beyond(`an integer of more than ${MAX_INT_DIGITS} digits`);
        return negative ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
      }
      return BigInt(match[0]);
    }
    return Number(match[0]);
  }

  private string(): string {
    const start = this.at++;
    let out = '';
    for (;;) {
      PLAIN.lastIndex = this.at;
      const plain = PLAIN.exec(this.text)?.[0] ?? '';
      out += plain;
      this.at += plain.length;
      const c = this.text[this.at];
      if (c === '"') {
        this.at++;
        return out;
      }
      if (c === undefined) throw this.fault('a string that does not end', start);
      if (c !== '\\') throw this.fault('a control character inside a string');
      const kind = this.text[this.at + 1] ?? '';
      if (kind === 'u') {
        const hex = this.text.slice(this.at + 2, this.at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(hex)) throw this.fault('\\u needs four hexadecimal digits');
        out += String.fromCharCode(Number.parseInt(hex, 16));
        this.at += 6;
      } else {
        const plainEscape = ESCAPES[kind];
        if (plainEscape === undefined) throw this.fault('an unknown escape in a string');
        out += plainEscape;
        this.at += 2;
      }
    }
  }

  private array(depth: number): Value[] {
    this.at++;
    const items: Value[] = [];
    this.space();
    if (this.text[this.at] === ']') {
      this.at++;
      return items;
    }
    for (;;) {
      items.push(this.value(depth + 1));
      this.space();
      const c = this.text[this.at];
      if (c === ']') {
        this.at++;
        return items;
      }
      if (c !== ',') throw this.fault("',' or ']' is expected in the list");
      this.at++;
    }
  }

  private object(depth: number): ValueMap {
    this.at++;
    const map: ValueMap = new Map();
    this.space();
    if (this.text[this.at] === '}') {
      this.at++;
      return map;
    }
    for (;;) {
      this.space();
      const where = this.at;
      const key = this.key();
      if (depth <= this.strictDepth && map.has(key))
        throw this.fault(`the key ${JSON.stringify(key)} is given twice`, where);
      map.set(key, this.value(depth + 1));
      this.space();
      const c = this.text[this.at];
      if (c === '}') {
        this.at++;
        return map;
      }
      if (c !== ',') throw this.fault("',' or '}' is expected in the object");
      this.at++;
    }
  }

  private key(): string {
    this.space();
    if (this.text[this.at] !== '"') throw this.fault('a key in double quotes is expected');
    const key = this.string();
    this.space();
    if (this.text[this.at] !== ':') throw this.fault("':' is expected after the key");
    this.at++;
    return key;
  }

  /** Past a value of any depth, which must be JSON all the same. Without recursion. */
  private skip(): void {
    const open: string[] = [];
    for (;;) {
      this.space();
      const c = this.text[this.at];
      if (c === '[' || c === '{') {
        const close = c === '[' ? ']' : '}';
        this.at++;
        this.space();
        if (this.text[this.at] !== close) {
          if (close === '}') this.key();
          open.push(close);
          continue;
        }
        this.at++;
      } else this.value(0);
      while (!this.nextItem(open)) open.pop();
      if (open.length === 0) return;
    }
  }

  /** Whether another value follows in the innermost container that is open; past its end if not. */
  private nextItem(open: readonly string[]): boolean {
    const close = open.at(-1);
    if (close === undefined) return true;
    this.space();
    const c = this.text[this.at];
    if (c !== ',' && c !== close) throw this.fault(`',' or '${close}' is expected`);
    this.at++;
    if (c === ',' && close === '}') this.key();
    return c === ',';
  }
}

const WORDS: readonly (readonly [string, Value])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
];

export interface WriteOptions {
  /** `json.dumps(sort_keys=True)`: keys by code point. */
  sortKeys?: boolean;
  /** `json.dumps(indent=n)`. */
  indent?: number;
  /** With `indent`: so many levels deep the value stands in what surrounds it. */
  level?: number;
  /** `json.dumps(separators=(",", ":"))`, for what only we read. */
  compact?: boolean;
}

/** `json.dumps(value)`: ASCII text, lone surrogates kept as escapes. */
export function dumpJson(value: Value, options: WriteOptions = {}): string {
  // One growing text: a rope costs a third less than a list of pieces that is joined.
  let out = '';
  const comma = options.compact || options.indent !== undefined ? ',' : ', ';
  const colon = options.compact ? ':' : ': ';
  const write = (v: Value, level: number): void => {
    if (v === null) out += 'null';
    else if (typeof v === 'boolean') out += v ? 'true' : 'false';
    else if (typeof v === 'bigint') out += v.toString();
    else if (typeof v === 'number')
      out += Number.isFinite(v) ? floatRepr(v) : Number.isNaN(v) ? 'NaN' : v > 0 ? 'Infinity' : '-Infinity';
    else if (typeof v === 'string') out += dumpText(v);
    else if (Array.isArray(v)) items('[', ']', v.length, level, (i) => write(v[i] as Value, level + 1));
    else {
      const keys = [...v.keys()];
      if (options.sortKeys) keys.sort(compareCodePoints);
      items('{', '}', keys.length, level, (i) => {
        const key = keys[i] as string;
        out += dumpText(key) + colon;
        write(v.get(key) as Value, level + 1);
      });
    }
  };
  const items = (open: string, close: string, count: number, level: number, each: (i: number) => void): void => {
    if (count === 0) {
      out += open + close;
      return;
    }
    const pad = options.indent === undefined ? '' : `\n${' '.repeat(options.indent * (level + 1))}`;
    out += open + pad;
    for (let i = 0; i < count; i++) {
      if (i > 0) out += comma + pad;
      each(i);
    }
    if (options.indent !== undefined) out += `\n${' '.repeat(options.indent * level)}`;
    out += close;
  };
  write(value, options.level ?? 0);
  return out;
}

/** `repr(float)`: the shortest digits that read back, exponent form below 1e-4 and from 1e16 on, always with a point or an exponent. */
export function floatRepr(x: number): string {
  if (Number.isNaN(x)) return 'nan';
  if (!Number.isFinite(x)) return x > 0 ? 'inf' : '-inf';
  if (Object.is(x, -0)) return '-0.0';
  const [mantissa, exponentText] = x.toExponential().split('e') as [string, string];
  const exponent = Number(exponentText);
  const sign = mantissa.startsWith('-') ? '-' : '';
  const digits = mantissa.replace('-', '').replace('.', '');
  if (x !== 0 && (exponent < -4 || exponent >= 16)) {
    const point = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : digits;
    return `${sign}${point}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  if (digits.length <= exponent + 1) return `${sign}${digits}${'0'.repeat(exponent + 1 - digits.length)}.0`;
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

/** Plain JavaScript data (ours) as a Value: numbers that are integers become ints. Refuses what JSON cannot carry. */
export function toValue(data: unknown): Value {
  if (data === null || typeof data === 'boolean' || typeof data === 'string' || typeof data === 'bigint') return data;
  if (typeof data === 'number') return Number.isInteger(data) ? BigInt(data) : data;
  if (Array.isArray(data)) return data.map(toValue);
  if (isMap(data)) return data;
  if (typeof data === 'object') return new Map(Object.entries(data).map(([key, x]) => [key, toValue(x)]));
  throw new TypeError(`${typeof data} is not a JSON value`);
}
