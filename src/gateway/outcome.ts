// One sample's outcome as `/v1/score` tells it: the fields of `farm score`. No result has no reward, only a cause; what
// stands in for it in `rewards` is the caller's wish. No number leaves that is not finite.

import { dumpJson } from '../shared/json/json.ts';
import { isMap, type Value, type ValueMap } from '../shared/json/value.ts';
import { type Cause, detailOf } from '../shared/outcome.ts';
import { parsedToValue } from '../workers/verify/parser.ts';
import { reportToValue } from '../workers/verify/report.ts';
import type { VerifyResult } from '../workers/verify/verify.ts';
import { Turns } from './score.ts';

export type Outcome =
  | { status: 'completed'; reward: number; more: ValueMap }
  | { status: 'no_result'; cause: Cause; detail: string };

export function outcomeOf(result: VerifyResult, withParsed: boolean): Outcome {
  if (result.status === 'no_result') return result;
  if (!Number.isFinite(result.reward))
    return { status: 'no_result', cause: 'environment_error', detail: 'the reward is not a finite number' };
  const more: ValueMap = new Map<string, Value>([['components', new Map(Object.entries(result.components))]]);
  if (withParsed) more.set('parsed', result.parsed && parsedToValue(result.parsed));
  more.set('report', result.report && reportToValue(result.report));
  more.set('cache_key', result.cacheKey).set('cached', result.cached);
  if (result.floored !== null) more.set('floored', result.floored);
  return { status: 'completed', reward: result.reward, more };
}

export function noResult(cause: Cause, detail: string): Outcome {
  return { status: 'no_result', cause, detail: detailOf(detail) };
}

/** How many outcomes are written in one turn of the event loop. */
const SLICE = 256;

/** `{"rewards", "outcomes"}`; `floor` null leaves a null for no result. */
export async function renderScore(outcomes: readonly Outcome[], floor: number | null): Promise<Buffer[]> {
  const turns = new Turns(outcomes.length > SLICE);
  const rewards: Value[] = outcomes.map((one) => (one.status === 'completed' ? one.reward : floor));
  const chunks = [Buffer.from(`{"rewards":${dumpJson(rewards, { compact: true })},"outcomes":[`)];
  for (let start = 0; start < outcomes.length; start += SLICE) {
    await turns.next();
    const rows = outcomes.slice(start, start + SLICE).map((one, i) => rowOf(start + i, one));
    chunks.push(Buffer.from(`${start > 0 ? ',' : ''}${dumpRows(rows)}`));
  }
  chunks.push(Buffer.from(']}\n'));
  return chunks;
}

function rowOf(index: number, outcome: Outcome): ValueMap {
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
