// `key: value` lines inside the decision block, for models that do not write strict JSON. The patterns come from the
// config and meet text that the policy chose, so a match has a time limit: a completion on which a pattern runs
// away is unreadable, not a stalled worker.

import vm from 'node:vm';
import type { Value, ValueMap } from '../../shared/json/value.ts';
import { type Pattern, PatternFault, translatePattern } from '../../shared/python/regex.ts';
import { parseFloatText, parseInteger, strip } from '../../shared/python/text.ts';
import { FACT_PATTERN } from '../../shared/spec/verifier-config.ts';

const MATCH_LIMIT_MS = 1_000;

export interface FactLines {
  facts: ValueMap;
  answer: string | null;
}

/** Null where there are no facts, or where the library raises or would not come back. */
export function readFacts(patterns: { answerPattern: string; factPattern: string }, block: string): FactLines | null {
  try {
    const fact = compiled(patterns.factPattern);
    const answer = compiled(patterns.answerPattern);
    // Two of three texts on which the usual pattern runs away hold no fact at all.
    if (patterns.factPattern === FACT_PATTERN && !/fact/i.test(block)) return null;
    return limited(() => read(fact, answer, block));
  } catch (error) {
    if (error instanceof PatternFault || isTimeout(error)) return null;
    throw error;
  }
}

function read(fact: Pattern, answer: Pattern, block: string): FactLines | null {
  const facts: ValueMap = new Map();
  fact.regexp.lastIndex = 0;
  for (const match of block.matchAll(fact.regexp)) {
    // `findall` gives the groups, or the one group's (or the whole match's) text, which then unpacks by character.
    const pair =
      fact.groups >= 2 ? match.slice(1).map((x) => x ?? '') : [...((fact.groups === 1 ? match[1] : match[0]) ?? '')];
    if (pair.length !== 2) return null;
    facts.set(pair[0] as string, coerce(pair[1] as string));
  }
  if (facts.size === 0) return null;
  answer.regexp.lastIndex = 0;
  const found = answer.regexp.exec(block);
  if (!found) return { facts, answer: null };
  return found[1] === undefined ? null : { facts, answer: strip(found[1]) };
}

function coerce(raw: string): Value {
  const text = strip(raw);
  const low = text.toLowerCase();
  if (low === 'true' || low === 'false') return low === 'true';
  return parseInteger(text) ?? parseFloatText(text) ?? text;
}

const cache = new Map<string, Pattern>();

function compiled(source: string): Pattern {
  let pattern = cache.get(source);
  if (!pattern) {
    pattern = translatePattern(source);
    if (cache.size >= 64) cache.clear();
    cache.set(source, pattern);
  }
  return pattern;
}

let context: vm.Context | undefined;
const script = new vm.Script('work()');

// The engine's watchdog ends a match that runs away, which nothing else in the process could.
function limited<T>(work: () => T): T {
  let result: { value: T } | undefined;
  context ??= vm.createContext({ work: null });
  context.work = () => {
    result = { value: work() };
  };
  script.runInContext(context, { timeout: MATCH_LIMIT_MS });
  return (result as { value: T }).value;
}

// Made by the engine in the script's own realm, where it is no `Error` of ours.
function isTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
