// A large JSON object whose bulk lies in lists right under its keys, read in pieces with a turn of the event loop
// between them: the same value as `parseJson` gives, while others are served. Whatever is not sound JSON is left to
// `parseJson`, which knows how to say what is wrong and where.
import { JsonError, parseJson } from '../shared/json/json.js';
/** Characters read at once: a few milliseconds. */
const PIECE = 128 * 1024;
const OPTIONS = { duplicates: 'top' };
/** Pieces stand one level higher than in the whole. */
const INNER = { maxDepth: 899 };
/** A key given twice in the outermost object is refused. Throws JsonError. */
export async function parseLarge(text) {
    if (text.length <= PIECE * 2)
        return parseJson(text, OPTIONS);
    try {
        const value = await new Pieces(text).object();
        if (value !== null)
            return value;
    }
    catch (error) {
        if (!(error instanceof JsonError))
            throw error;
    }
    return parseJson(text, OPTIONS);
}
class Pieces {
    text;
    at = 0;
    constructor(text) {
        this.text = text;
    }
    /** Null where something is not as it should be. */
    async object() {
        const map = new Map();
        this.space();
        if (!this.eat('{'))
            return null;
        do {
            this.space();
            const from = this.at;
            if (!this.string())
                return null;
            const key = parseJson(this.text.slice(from, this.at));
            this.space();
            if (map.has(key) || !this.eat(':'))
                return null;
            this.space();
            const value = this.text[this.at] === '[' ? await this.list() : this.plain();
            if (value === null)
                return null;
            map.set(key, value.is);
            this.space();
        } while (this.eat(','));
        if (!this.eat('}'))
            return null;
        this.space();
        return this.at === this.text.length ? map : null;
    }
    async list() {
        const items = [];
        this.at++;
        for (let from = this.at, more = true; more; from = this.at) {
            // To the first end of an item behind a whole piece, or to the list's own end.
            do {
                if (!this.item())
                    return null;
                more = this.text[this.at] === ',';
                if (more)
                    this.at++;
            } while (more && this.at - from < PIECE);
            const piece = parseJson(`[${this.text.slice(from, more ? this.at - 1 : this.at)}]`, INNER);
            // Nothing between two commas, or behind the last one.
            if (piece.length === 0 && (more || items.length > 0))
                return null;
            for (const item of piece)
                items.push(item);
            if (more)
                await new Promise((resolve) => setImmediate(resolve));
        }
        return this.eat(']') ? { is: items } : null;
    }
    plain() {
        const from = this.at;
        return this.item() ? { is: parseJson(this.text.slice(from, this.at), INNER) } : null;
    }
    /** Goes to the comma or the bracket that ends an item. */
    item() {
        for (let depth = 0; this.at < this.text.length; this.at++) {
            switch (this.text.charCodeAt(this.at)) {
                case 0x22:
                    if (!this.string())
                        return false;
                    this.at--;
                    break;
                case 0x5b:
                case 0x7b:
                    depth++;
                    break;
                case 0x5d:
                case 0x7d:
                    if (depth === 0)
                        return true;
                    depth--;
                    break;
                case 0x2c:
                    if (depth === 0)
                        return true;
            }
        }
        return false;
    }
    /** Goes behind a text; false if there is none, or it has no end. */
    string() {
        if (this.text[this.at] !== '"')
            return false;
        for (let end = this.text.indexOf('"', this.at + 1); end >= 0; end = this.text.indexOf('"', end + 1)) {
            let slashes = 0;
            while (this.text.charCodeAt(end - 1 - slashes) === 0x5c)
                slashes++;
            if (slashes % 2 === 0) {
                this.at = end + 1;
                return true;
            }
        }
        return false;
    }
    eat(mark) {
        if (this.text[this.at] !== mark)
            return false;
        this.at++;
        return true;
    }
    space() {
        while (' \n\r\t'.includes(this.text[this.at] ?? 'x'))
            this.at++;
    }
}
