// Reads a spec or config as PyYAML's safe loader does (YAML 1.1, see yaml-scalar.ts), with three differences:
// a key given twice is an error, dates stay text, and aliases may not multiply a small file into a huge one.
// A text that is JSON is read as JSON, at JSON's speed and with JSON's numbers (`1e-6` is a number there).
// Messages never quote the file's content: it may hold a secret that does not belong there.
import { isAlias, isMap as isMapNode, isScalar, isSeq, Lexer, LineCounter, parseDocument, Scalar, } from 'yaml';
import { JsonError, parseJson } from '../json/json.js';
import { locateJson, spotAt } from '../json/locate.js';
import { isMap } from '../json/value.js';
import { plainScalar } from './yaml-scalar.js';
export class YamlError extends Error {
    line;
    column;
    constructor(message, spot) {
        super(message);
        this.name = 'YamlError';
        this.line = spot.line;
        this.column = spot.column;
    }
}
/** Less than readers take by default: documents and trajectories put a few levels around what stands here. */
const MAX_DEPTH = 850;
/** What aliases may add, in characters of the text that they stand for. */
const MAX_ALIASED = 64 * 1024 * 1024;
/** YAML that is not JSON is read at about 1 MB a second, at many times its size in memory. */
const MAX_YAML_CHARACTERS = 48 * 1024 * 1024;
const CORE = 'tag:yaml.org,2002:';
/** The value of `text`; a name that ends in `.json` allows JSON alone. Throws YamlError. */
export function readYaml(text, file) {
    const body = text.startsWith('\ufeff') ? text.slice(1) : text;
    const json = /\.json$/i.test(file);
    if (json || /^\s*[{[]/.test(body)) {
        try {
            const value = parseJson(body, { duplicates: 'error', maxDepth: MAX_DEPTH });
            return { value, locate: (path) => locateJson(body, path) };
        }
        catch (error) {
            if (!(error instanceof JsonError))
                throw error;
            const clear = /given twice|nested deeper/.test(error.message);
            // Flow YAML also begins with a brace, and is seldom large; JSON with a fault far down is JSON.
            if (json || clear || error.offset > 1_000_000)
                throw new YamlError(bare(error), error);
        }
    }
    if (body.length > MAX_YAML_CHARACTERS)
        throw new YamlError(`YAML of more than ${MAX_YAML_CHARACTERS / 2 ** 20} MB: put tasks into a JSONL file, or write JSON`, {
            line: 1,
            column: 1,
        });
    return new Builder(body).read();
}
/** A JsonError's message without the place, which is told apart. */
export function bare(error) {
    return error.message.replace(/ \(line \d+, column \d+\)$/, '');
}
class Builder {
    text;
    lines = new LineCounter();
    anchors = new Map();
    /** By the value that was built from it: containers are unique objects. */
    nodes = new Map();
    aliased = 0;
    constructor(text) {
        this.text = text;
    }
    read() {
        let root;
        try {
            const document = parseDocument(this.text, {
                version: '1.1',
                schema: 'failsafe',
                merge: false,
                resolveKnownTags: false,
                uniqueKeys: false,
                prettyErrors: false,
                logLevel: 'error',
                lineCounter: this.lines,
            });
            const fault = document.errors[0];
            if (fault?.message.includes('call stack'))
                throw new YamlError('nested too deeply', { line: 1, column: 1 });
            if (fault)
                throw this.fault(fault.message.replace(/\s+/g, ' ').slice(0, 200), fault.pos[0]);
            if (this.text.includes('\t'))
                this.noTabs();
            root = document.contents === null ? null : this.build(document.contents, 0).value;
        }
        catch (error) {
            if (error instanceof RangeError)
                throw new YamlError('nested too deeply', { line: 1, column: 1 });
            throw error;
        }
        return { value: root, locate: (path) => this.locate(root, path) };
    }
    // PyYAML takes a tab inside quotes, block texts and comments, and nowhere else.
    noTabs() {
        let offset = 0;
        let block = false;
        for (const piece of new Lexer().lex(this.text)) {
            // Marks of the lexer's own, which stand for no character.
            if (/^[\x02\x18\x1f]$/.test(piece))
                continue;
            const body = block && !/^(?:#|\r?\n$| +$)/.test(piece);
            if (piece.includes('\t') && !body && !/^["'#]/.test(piece))
                throw this.fault('a tab stands where only spaces may', offset + piece.indexOf('\t'));
            if (body)
                block = false;
            else if (/^[|>]/.test(piece))
                block = true;
            offset += piece.length;
        }
    }
    fault(message, offset) {
        return new YamlError(message, spotAt(this.text, Math.min(offset, this.text.length)));
    }
    build(node, depth) {
        const at = startOf(node);
        if (depth > MAX_DEPTH)
            throw this.fault(`nested deeper than ${MAX_DEPTH} levels`, at);
        if (isAlias(node)) {
            const target = this.anchors.get(node.source);
            if (target === undefined)
                throw this.fault(`the alias *${node.source} has no anchor before it`, at);
            if (target === 'open')
                throw this.fault(`the alias *${node.source} stands inside its own anchor`, at);
            this.aliased += target.weight;
            if (this.aliased > MAX_ALIASED)
                throw this.fault(`its aliases stand for more than ${MAX_ALIASED / 2 ** 20} MB`, at);
            return target;
        }
        if (!isScalar(node) && !isMapNode(node) && !isSeq(node))
            throw this.fault('a value is expected here', at);
        if (node.anchor)
            this.anchors.set(node.anchor, 'open');
        const built = isScalar(node) ? this.scalar(node) : isSeq(node) ? this.list(node, depth) : this.map(node, depth);
        if (node.anchor)
            this.anchors.set(node.anchor, built);
        return built;
    }
    scalar(node) {
        const text = String(node.value ?? '');
        const weight = 8 + text.length;
        const plain = node.type === Scalar.PLAIN || node.type === undefined;
        // YAML 1.1's value tag, which its safe loader does not make either.
        if (plain && text === '=' && node.tag === undefined)
            throw this.fault("'=' stands for nothing here; put it in quotes", startOf(node));
        if (node.tag === undefined)
            return { value: plain ? plainScalar(text) : text, weight };
        if (node.tag === '!' || node.tag === `${CORE}str`)
            return { value: text, weight };
        const value = plainScalar(text);
        const name = node.tag.startsWith(CORE) ? node.tag.slice(CORE.length) : '';
        const fits = (name === 'int' && typeof value === 'bigint') ||
            (name === 'float' && (typeof value === 'number' || typeof value === 'bigint')) ||
            (name === 'bool' && typeof value === 'boolean') ||
            (name === 'null' && value === null);
        if (!fits)
            throw this.fault(`the tag ${node.tag} is not allowed here`, startOf(node));
        return { value: name === 'float' ? Number(value) : value, weight };
    }
    list(node, depth) {
        this.plainTag(node, 'seq');
        const value = [];
        let weight = 8;
        for (const child of node.items) {
            this.noMerge(child);
            const built = this.build(child, depth + 1);
            value.push(built.value);
            weight += built.weight;
        }
        this.nodes.set(value, node);
        return { value, weight };
    }
    map(node, depth) {
        this.plainTag(node, 'map');
        const own = new Map();
        const merged = [];
        const lines = new Map();
        let weight = 8;
        for (const pair of node.items) {
            const at = startOf(pair.key);
            const key = this.key(pair.key, depth);
            const first = lines.get(key);
            const line = spotLine(this.lines, at);
            if (first !== undefined)
                throw this.fault(`the key ${JSON.stringify(key)} is given twice (first at line ${first})`, at);
            lines.set(key, line);
            this.noMerge(pair.value);
            const built = pair.value === null ? { value: null, weight: 8 } : this.build(pair.value, depth + 1);
            weight += built.weight + key.length;
            if (isScalar(pair.key) && pair.key.type === Scalar.PLAIN && key === '<<')
                merged.push(...this.mergeable(built, at));
            else
                own.set(key, built.value);
        }
        // PyYAML puts what is merged first; own keys win, and keep the merged key's position.
        const value = merged.length === 0 ? own : new Map([...merged, own].flatMap((m) => [...m]));
        this.nodes.set(value, node);
        return { value, weight };
    }
    /** The merge mark is a key, and no value. */
    noMerge(node) {
        if (isScalar(node) && node.type === Scalar.PLAIN && node.value === '<<' && node.tag === undefined)
            throw this.fault("'<<' is no value; put it in quotes", startOf(node));
    }
    key(node, depth) {
        const { value } = node === null ? { value: null } : this.build(node, depth + 1);
        if (typeof value === 'string')
            return value;
        if (isMap(value) || Array.isArray(value))
            throw this.fault('a key must be a single value', startOf(node));
        // As json.dumps writes such keys.
        return value === null ? 'null' : String(value);
    }
    /** In the order in which later ones win: a list's first map wins over its second. */
    mergeable(built, at) {
        const maps = Array.isArray(built.value) ? [...built.value].reverse() : [built.value];
        return maps.map((map) => {
            if (!isMap(map))
                throw this.fault('<< takes a mapping or a list of mappings', at);
            return map;
        });
    }
    plainTag(node, kind) {
        if (node.tag !== undefined && node.tag !== '!' && node.tag !== CORE + kind)
            throw this.fault(`the tag ${node.tag} is not allowed here`, startOf(node));
    }
    locate(root, path) {
        let value = root;
        let offset = startOf(this.nodes.get(root));
        for (const step of path) {
            const node = value === undefined ? undefined : this.nodes.get(value);
            const child = typeof step === 'number'
                ? isSeq(node)
                    ? node.items[step]
                    : undefined
                : isMapNode(node)
                    ? node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === step)?.key
                    : undefined;
            if (child === undefined || child === null)
                break;
            offset = startOf(child);
            value = Array.isArray(value) ? value[step] : isMap(value) ? value.get(String(step)) : undefined;
        }
        return spotAt(this.text, offset);
    }
}
function startOf(node) {
    const range = node?.range;
    return range?.[0] ?? 0;
}
function spotLine(lines, offset) {
    return lines.linePos(offset).line;
}
