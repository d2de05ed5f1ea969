// A Python `re` pattern as a JavaScript one with the same meaning: Unicode `\s \w \d \b`, `.` and `^ $` that know
// only `\n`, IGNORECASE with Python's extra cases for i (vectors/README.md, pitfalls 10 to 13). What has no
// counterpart (scoped flags, verbose, atomic groups, conditionals) is refused by name, when the config is read.
import { SPACE } from './text.js';
export class PatternFault extends Error {
}
// Not `[^]`: with the flag `v`, Node 20 takes that for something else.
const ANY = '[\\s\\S]';
const WORD = '\\p{L}\\p{N}_';
const BOUNDARY = `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`;
const INNER = `(?:(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`;
const CONTROL = { n: '\\n', r: '\\r', t: '\\t', f: '\\f', v: '\\v', a: '\\x07' };
/** Throws PatternFault. The expression has the flags `g` and `v`, for sets within sets. */
export function translatePattern(source) {
    const head = /^\(\?([aimsux]+)\)/.exec(source);
    const flags = head?.[1] ?? '';
    for (const flag of flags)
        if (!'imsu'.includes(flag))
            throw new PatternFault(`the flag '${flag}' is not supported`);
    const out = new Translator(source, head?.[0].length ?? 0, flags).all();
    try {
        const regexp = new RegExp(out, flags.includes('i') ? 'giv' : 'gv');
        return { regexp, groups: (new RegExp(`${out}|`, 'v').exec('')?.length ?? 1) - 1 };
    }
    catch (error) {
        throw new PatternFault(error instanceof Error ? error.message : 'not a pattern');
    }
}
class Translator {
    text;
    at;
    fold;
    lines;
    dotAll;
    constructor(text, start, flags) {
        this.text = text;
        this.at = start;
        this.fold = flags.includes('i');
        this.lines = flags.includes('m');
        this.dotAll = flags.includes('s');
    }
    all() {
        let out = '';
        while (this.at < this.text.length)
            out += this.piece();
        return out;
    }
    take() {
        const c = String.fromCodePoint(this.text.codePointAt(this.at));
        this.at += c.length;
        return c;
    }
    piece() {
        const c = this.take();
        if (c === '.')
            return this.dotAll ? ANY : '[^\\n]';
        if (c === '^')
            return this.lines ? '(?<![^\\n])' : `(?<!${ANY})`;
        if (c === '$')
            return this.lines ? '(?![^\\n])' : `(?=\\n?(?!${ANY}))`;
        if (c === '[')
            return this.set();
        if (c === '(')
            return this.open();
        if (c === '\\')
            return this.escape(false);
        if (c === '{') {
            const count = /^(\d*)(,?)(\d*)\}/.exec(this.text.slice(this.at));
            if (!count || (count[1] === '' && count[3] === ''))
                return '\\{';
            this.at += count[0].length;
            return `{${count[1] || '0'}${count[2]}${count[3]}}${this.lazy()}`;
        }
        if (c === '*' || c === '+' || c === '?')
            return c + this.lazy();
        return c === '|' || c === ')' ? c : this.literal(c, false);
    }
    lazy() {
        if (this.text[this.at] === '+')
            throw new PatternFault('possessive quantifiers are not supported');
        if (this.text[this.at] !== '?')
            return '';
        this.at++;
        return '?';
    }
    open() {
        if (this.text[this.at] !== '?')
            return '(';
        const rest = this.text.slice(this.at);
        const comment = /^\?#[^)]*\)/.exec(rest);
        if (comment) {
            this.at += comment[0].length;
            return '';
        }
        const back = /^\?P=(\w+)\)/.exec(rest);
        if (back) {
            this.at += back[0].length;
            return `\\k<${back[1]}>`;
        }
        const known = /^\?(?:P<(\w+)>|:|=|!|<=|<!)/.exec(rest);
        if (!known)
            throw new PatternFault(`a group that begins with '(${rest.slice(0, 3)}' is not supported`);
        this.at += known[0].length;
        return known[1] ? `(?<${known[1]}>` : `(${known[0]}`;
    }
    set() {
        const negated = this.text[this.at] === '^';
        if (negated)
            this.at++;
        let body = '';
        for (let first = true; first || this.text[this.at] !== ']'; first = false) {
            const low = this.member();
            const ranged = this.text[this.at] === '-' && this.at + 1 < this.text.length && this.text[this.at + 1] !== ']';
            if (!ranged) {
                body += low.text;
                continue;
            }
            this.at++;
            const high = this.member();
            if (!low.single || !high.single)
                throw new PatternFault('a range of what is no single character');
            body += `${low.text}-${high.text}`;
        }
        this.at++;
        try {
            if (this.fold && new RegExp(`[${body}]`, 'iv').test('iI\u0130\u0131'))
                body += 'iI\\u0130\\u0131';
        }
        catch (error) {
            throw new PatternFault(error instanceof Error ? error.message : 'not a set');
        }
        return `[${negated ? '^' : ''}${body}]`;
    }
    member() {
        if (this.at >= this.text.length)
            throw new PatternFault("a '[' without its ']'");
        const c = this.take();
        if (c !== '\\')
            return { text: this.literal(c, true), single: true };
        const next = this.text[this.at] ?? '';
        return { text: this.escape(true), single: !'sSwWdD'.includes(next) };
    }
    escape(inSet) {
        if (this.at >= this.text.length)
            throw new PatternFault('a backslash at the end');
        const c = this.take();
        if (c === 's')
            return inSet ? SPACE : `[${SPACE}]`;
        if (c === 'S')
            return `[^${SPACE}]`;
        if (c === 'w')
            return inSet ? WORD : `[${WORD}]`;
        if (c === 'W')
            return `[^${WORD}]`;
        if (c === 'd')
            return '\\p{Nd}';
        if (c === 'D')
            return '\\P{Nd}';
        if (c === 'b')
            return inSet ? '\\x08' : BOUNDARY;
        if (!inSet && c === 'B')
            return INNER;
        if (!inSet && c === 'A')
            return `(?<!${ANY})`;
        if (!inSet && c === 'Z')
            return `(?!${ANY})`;
        const control = CONTROL[c];
        if (control)
            return control;
        if (c === 'x' || c === 'u' || c === 'U') {
            const length = c === 'x' ? 2 : c === 'u' ? 4 : 8;
            const hex = this.text.slice(this.at, this.at + length);
            if (hex.length !== length || !/^[0-9a-fA-F]+$/.test(hex))
                throw new PatternFault(`\\${c} needs ${length} digits`);
            this.at += length;
            return `\\u{${Number.parseInt(hex, 16).toString(16)}}`;
        }
        if (/[1-9]/.test(c) && !inSet)
            return `(?:\\${c})`;
        if (c === '0')
            return '\\x00';
        if (/[a-zA-Z0-9]/.test(c))
            throw new PatternFault(`\\${c} is not supported`);
        return this.literal(c, inSet);
    }
    literal(c, inSet) {
        if (inSet)
            return /[\^$\\.*+?()[\]{}|/&!#%,:;<=>@`~-]/.test(c) ? `\\${c}` : c;
        if (this.fold && /[iI\u0130\u0131]/.test(c))
            return '[iI\\u0130\\u0131]';
        return /[\^$\\.*+?()[\]{}|/]/.test(c) ? `\\${c}` : c;
    }
}
