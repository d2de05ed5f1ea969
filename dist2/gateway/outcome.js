// One sample's outcome as `/v1/score` tells it: the fields of `farm score`. No result has no reward, only a cause; what
// stands in for it in `rewards` is the caller's wish. No number leaves that is not finite.
import { dumpJson } from '../shared/json/json.js';
import { isMap } from '../shared/json/value.js';
import { detailOf } from '../shared/outcome.js';
import { parsedToValue } from '../workers/verify/parser.js';
import { reportToValue } from '../workers/verify/report.js';
export function outcomeOf(result, telling) {
    if (result.status === 'no_result')
        return result;
    if (!Number.isFinite(result.reward))
        return { status: 'no_result', cause: 'environment_error', detail: 'the reward is not a finite number' };
    if (telling === 'reward')
        return { status: 'completed', reward: result.reward, more: new Map() };
    const more = new Map([['components', new Map(Object.entries(result.components))]]);
    if (telling === 'parsed')
        more.set('parsed', result.parsed && parsedToValue(result.parsed));
    more.set('report', result.report && reportToValue(result.report));
    more.set('cache_key', result.cacheKey).set('cached', result.cached);
    if (result.floored !== null)
        more.set('floored', result.floored);
    return { status: 'completed', reward: result.reward, more };
}
export function noResult(cause, detail) {
    return { status: 'no_result', cause, detail: detailOf(detail) };
}
/** `{"rewards", "outcomes"}`, made as the outcomes come, so that no certificate is kept longer than its text. */
export class ScoreAnswer {
    rewards;
    rows = [];
    /** `floor` null leaves a null for no result. */
    constructor(count, floor) {
        this.rewards = new Array(count).fill(floor);
    }
    add(start, outcomes) {
        for (const [i, one] of outcomes.entries())
            if (one.status === 'completed')
                this.rewards[start + i] = one.reward;
        this.rows.push({ start, text: Buffer.from(dumpRows(outcomes.map((one, i) => outcomeRow(start + i, one)))) });
    }
    chunks() {
        this.rows.sort((a, b) => a.start - b.start);
        const comma = Buffer.from(',');
        const rows = this.rows.flatMap(({ text }, i) => (i === 0 ? [text] : [comma, text]));
        const head = Buffer.from(`{"rewards":${dumpJson(this.rewards, { compact: true })},"outcomes":[`);
        return [head, ...rows, Buffer.from(']}\n')];
    }
}
/** One line of the answer. */
export function outcomeRow(index, outcome) {
    const row = new Map([
        ['index', BigInt(index)],
        ['status', outcome.status],
    ]);
    if (outcome.status === 'no_result') {
        // A field that is always there is easier to read than one that is sometimes: null, never a number.
        row.set('reward', null).set('components', new Map()).set('cause', outcome.cause).set('detail', outcome.detail);
    }
    else {
        row.set('reward', outcome.reward);
        for (const [key, value] of outcome.more)
            row.set(key, value);
    }
    return row;
}
/** Looked at as text first: a row in which no such word stands, not even in a text of its own, is finite. */
function dumpRows(rows) {
    const text = dumpJson([...rows], { compact: true });
    const sound = !/NaN|Infinity/.test(text);
    return (sound ? text : dumpJson(rows.map(finite), { compact: true })).slice(1, -1);
}
// A verdict may carry what JSON cannot: it is shown as text, and was counted where it mattered.
function finite(value) {
    if (typeof value === 'number')
        return Number.isFinite(value) ? value : String(value);
    if (Array.isArray(value))
        return value.map(finite);
    return isMap(value) ? new Map([...value].map(([key, x]) => [key, finite(x)])) : value;
}
