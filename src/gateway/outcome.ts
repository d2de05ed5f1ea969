// One sample's outcome as `/v1/score` tells it: the fields of `farm score`. No result has no reward, only a cause; what
// stands in for it in `rewards` is the caller's wish. No number leaves that is not finite.

import { dumpJson } from '../shared/json/json.ts';
import { isMap, type Value, type ValueMap } from '../shared/json/value.ts';
import { type Cause, detailOf } from '../shared/outcome.ts';
import { parsedToValue } from '../workers/verify/parser.ts';
import { reportToValue } from '../workers/verify/report.ts';
import type { VerifyResult } from '../workers/verify/verify.ts';

export type Outcome =
  | { status: 'completed'; reward: number; more: ValueMap }
  | { status: 'no_result'; cause: Cause; detail: string };

/** What is told beside the reward: nothing, the certificate, or also what was read in the completion. */
export type Telling = 'reward' | 'report' | 'parsed';

export function outcomeOf(result: VerifyResult, telling: Telling): Outcome {
  if (result.status === 'no_result') return result;
  if (!Number.isFinite(result.reward))
    return { status: 'no_result', cause: 'environment_error', detail: 'the reward is not a finite number' };
  if (telling === 'reward') return { status: 'completed', reward: result.reward, more: new Map() };
  const more: ValueMap = new Map<string, Value>([['components', new Map(Object.entries(result.components))]]);
  if (telling === 'parsed') more.set('parsed', result.parsed && parsedToValue(result.parsed));
  more.set('report', result.report && reportToValue(result.report));
  more.set('cache_key', result.cacheKey).set('cached', result.cached);
  if (result.floored !== null) more.set('floored', result.floored);
  return { status: 'completed', reward: result.reward, more };
}

export function noResult(cause: Cause, detail: string): Outcome {
  return { status: 'no_result', cause, detail: detailOf(detail) };
}

/** `{"rewards", "outcomes"}`, made as the outcomes come, so that no certificate is kept longer than its text. */
export class ScoreAnswer {
  private readonly rewards: Value[];
  private readonly rows: { start: number; text: Buffer }[] = [];

  /** `floor` null leaves a null for no result. */
  constructor(count: number, floor: number | null) {
    this.rewards = new Array<Value>(count).fill(floor);
  }

  add(start: number, outcomes: readonly Outcome[]): void {
    for (const [i, one] of outcomes.entries()) if (one.status === 'completed') this.rewards[start + i] = one.reward;
    this.rows.push({ start, text: Buffer.from(dumpRows(outcomes.map((one, i) => outcomeRow(start + i, one)))) });
  }

  chunks(): Buffer[] {
    this.rows.sort((a, b) => a.start - b.start);
    const comma = Buffer.from(',');
    const rows = this.rows.flatMap(({ text }, i) => (i === 0 ? [text] : [comma, text]));
    const head = Buffer.from(`{"rewards":${dumpJson(this.rewards, { compact: true })},"outcomes":[`);
    return [head, ...rows, Buffer.from(']}\n')];
  }
}

/** One line of the answer. */
export function outcomeRow(index: number, outcome: Outcome): ValueMap {
  const row: ValueMap = new Map<string, Value>([
    ['index', BigInt(index)],
    ['status', outcome.status],
  ]);
  if (outcome.status === 'no_result') {
    // A field that is always there is easier to read than one that is sometimes: null, never a number.
    row.set('reward', null).set('components', new Map()).set('cause', outcome.cause).set('detail', outcome.detail);
  } else {
    row.set('reward', outcome.reward);
    for (const [key, value] of outcome.more) row.set(key, value);
  }
  return row;
}

/** Looked at as text first: a row in which no such word stands, not even in a text of its own, is finite. */
function dumpRows(rows: readonly ValueMap[]): string {
  const text = dumpJson([...rows], { compact: true });
  const sound = !/NaN|Infinity/.test(text);
  return (sound ? text : dumpJson(rows.map(finite), { compact: true })).slice(1, -1);
}

// A verdict may carry what JSON cannot: it is shown as text, and was counted where it mattered.
function finite(value: Value): Value {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (Array.isArray(value)) return value.map(finite);
  return isMap(value) ? new Map([...value].map(([key, x]) => [key, finite(x)])) : value;
}
