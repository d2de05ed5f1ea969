// One section of a spec, read field by field: each reader gives the value or its default, and reports what does not
// fit, so that one reading finds every problem. After a problem the value is the default, and only fit to go on looking.
import { isMap } from '../json/value.js';
import { show, suggestion } from './problem.js';
import { isSecretKey } from './secrets.js';
export class Fields {
    path;
    map;
    report;
    /** A section that is absent or null is one without keys. */
    constructor(value, path, report) {
        this.path = path;
        this.report = report;
        if (value === undefined || value === null)
            this.map = new Map();
        else if (isMap(value))
            this.map = value;
        else {
            this.map = new Map();
            report(path, `must be an object with keys, given ${show(value)}`);
        }
    }
    has(key) {
        return this.map.has(key);
    }
    raw(key) {
        return this.map.get(key);
    }
    problem(key, message) {
        this.report([...this.path, key], message);
    }
    /** Refuses every other key; one that names a secret is reported elsewhere, as that. */
    only(allowed) {
        for (const key of this.map.keys()) {
            if (!allowed.includes(key) && !isSecretKey(key))
                this.problem(key, `unknown key; ${suggestion(key, allowed)}`);
        }
    }
    int(key, bounds, fallback) {
        const value = this.map.get(key);
        if (value === undefined && fallback !== null)
            return fallback;
        if (typeof value === 'bigint' && fits(Number(value), bounds))
            return Number(value);
        this.problem(key, `${value === undefined ? 'is required: ' : 'must be '}an integer${range(bounds)}${given(value)}`);
        return fallback ?? bounds.min ?? 1;
    }
    /** An integer of any size. */
    bigint(key, fallback) {
        const value = this.map.get(key);
        if (value === undefined)
            return fallback;
        if (typeof value === 'bigint')
            return value;
        this.problem(key, `must be an integer${given(value)}`);
        return fallback;
    }
    number(key, bounds, fallback) {
        const value = this.map.get(key);
        if (value === undefined)
            return fallback;
        const number = typeof value === 'bigint' || typeof value === 'number' ? Number(value) : Number.NaN;
        if (Number.isFinite(number) && fits(number, bounds))
            return number;
        this.problem(key, `must be a finite number${range(bounds)}${given(value)}`);
        return fallback;
    }
    intOrNull(key, bounds) {
        const value = this.map.get(key);
        if (value === undefined || value === null)
            return null;
        if (typeof value === 'bigint' && fits(Number(value), bounds))
            return Number(value);
        this.problem(key, `must be null or an integer${range(bounds)}${given(value)}`);
        return null;
    }
    bool(key, fallback) {
        const value = this.map.get(key);
        if (value === undefined)
            return fallback;
        if (typeof value === 'boolean')
            return value;
        this.problem(key, `must be true or false${given(value)}`);
        return fallback;
    }
    /** One line of text that is not empty. Null after a problem, and where it is absent and not required. */
    text(key, required) {
        const value = this.map.get(key);
        if (value === undefined && !required)
            return null;
        if (typeof value === 'string' && isLine(value))
            return value;
        if (value === undefined)
            this.problem(key, 'is required: a text');
        else
            this.problem(key, `must be one line of text${given(value)}`);
        return null;
    }
    choice(key, allowed, fallback) {
        const value = this.map.get(key);
        if (value === undefined)
            return fallback;
        const found = allowed.find((word) => word === value);
        if (found !== undefined)
            return found;
        this.problem(key, `must be one of ${allowed.join(', ')}${given(value)}`);
        return fallback;
    }
}
/** Text that may stand in a file name, a key or a message: not empty, well formed, no control characters, at most 1,024 long. */
export function isLine(text) {
    return text.trim() !== '' && text.length <= 1024 && !/[\p{Cc}\p{Cs}]/u.test(text);
}
function given(value) {
    return value === undefined ? '' : `, given ${show(value)}`;
}
function fits(value, bounds) {
    return (value >= (bounds.min ?? Number.NEGATIVE_INFINITY) &&
        value <= (bounds.max ?? Number.POSITIVE_INFINITY) &&
        (bounds.above === undefined || value > bounds.above));
}
function range(bounds) {
    if (bounds.min !== undefined && bounds.max !== undefined)
        return ` from ${bounds.min} to ${bounds.max}`;
    const low = bounds.above === undefined
        ? bounds.min === undefined
            ? ''
            : ` of at least ${bounds.min}`
        : ` above ${bounds.above}`;
    return bounds.max === undefined ? low : `${low}${low === '' ? '' : ' and'} of at most ${bounds.max}`;
}
