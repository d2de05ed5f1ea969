// What travels between processes: a query, and an answer that may be kept. Lossless JSON, since numbers keep their type
// and text. The answer is stored without the query that the platform echoes.

import { dumpJson, parseJson } from '../../../shared/json/json.ts';
import { isMap, type Value, type ValueMap } from '../../../shared/json/value.ts';
import type { Answer } from '../client.ts';
import type { Query } from '../wire-request.ts';

type Kept = Extract<Answer, { kind: 'verdict' | 'denial' }>;

export function writeQuery(query: Query): string {
  return dumpJson([query.query, query.facts, query.relations, query.predictions], { compact: true });
}

export function readQuery(text: string): Query {
  const [query, facts, relations, predictions] = parseJson(text) as [string, ValueMap, Value, Value];
  return { query, facts, relations, predictions } as Query;
}

export function writeAnswer(answer: Kept): string {
  const { kind } = answer;
  const parts: Value = kind === 'verdict' ? answer.data : [answer.denial.message, answer.denial.rejectedFacts];
  return dumpJson([kind, parts], { compact: true });
}

/** Null for what is none of ours. */
export function readAnswer(text: string): Kept | null {
  const value = parseJson(text);
  if (!Array.isArray(value)) return null;
  const [kind, parts] = value;
  if (kind === 'verdict' && isMap(parts)) return { kind, data: parts };
  if (kind !== 'denial' || !Array.isArray(parts)) return null;
  const [message, rejectedFacts] = parts;
  return typeof message === 'string' ? { kind, denial: { message, rejectedFacts: rejectedFacts ?? null } } : null;
}
