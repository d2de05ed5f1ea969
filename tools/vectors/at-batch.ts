// The library's batch function over one report a position: the product's rewards over the same answers.

import { isMap, pyEqual, pyTruthy, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { toFloat } from '../../src/shared/python/number.ts';
import type { VerifierConfig } from '../../src/shared/spec/verifier-config.ts';
import { cacheKey } from '../../src/workers/verify/cache-key.ts';
import type { Answer } from '../../src/workers/verify/client.ts';
import { parseCompletion } from '../../src/workers/verify/parser.ts';
import { verifyCompletions } from '../../src/workers/verify/verify.ts';
import { denialOf } from './at-reports.ts';
import { shaperConfig, verifierConfig } from './reference-values.ts';
import type { VectorCase } from './vector-file.ts';
import { judge, notRun, type Verdict } from './verdict.ts';

const HOOKS = ['upstream_fixed', 'verify_raises', 'report_even_if_unparsed'];

export async function runBatch(one: VectorCase): Promise<Verdict> {
  if (HOOKS.some((name) => one.in.has(name)))
    return notRun('a verify function of the case that answers out of step, or raises');
  const config = configOf(one.in);
  if (!config) return notRun("a parser or shaper of the case's own that raises");
  const lists = ['prompts', 'completions', 'metadata'].map((name) => listOf(one.in.get(name)));
  const [prompts, completions, given] = lists as [Value[] | null, Value[] | null, Value[] | null];
  if (!prompts || !completions || (one.in.has('metadata') && !given))
    return judge(one, false, 'no lists', ['nothing-raises']);
  const metadata = given ?? completions.map(() => null);
  // What is not there for an item drops it, as `zip` does there; the gateway refuses lists whose lengths differ.
  const answered = one.in.has('upstream') ? completions.length : 0;
  const count = Math.min(prompts.length, completions.length, metadata.length, answered);
  const items = Array.from({ length: count }, (_, i) => ({
    prompt: prompts[i] as Value,
    completion: completions[i] as Value,
    metadata: metadata[i] as Value,
  }));
  const answers = answersOf(config, completions, one.in.get('upstream') ?? []);
  const results = await verifyCompletions(config, items, {
    ask: async (queries) => queries.map((query) => answers.get(cacheKey(config.platformId, query)) as Answer),
  });
  const rewards: Value = results.map((result) => (result.status === 'completed' ? result.reward : null));
  if (one.out.has('raises')) return judge(one, false, `rewards ${rewards}`, ['nothing-raises']);
  return judge(one, pyEqual(rewards, one.out.get('rewards') as Value), `rewards ${rewards}`, [
    'finite-numbers',
    'no-result-is-not-shaped',
    'equal-queries-once',
  ]);
}

/** Null where the case brings code of its own. */
function configOf(given: ValueMap): VerifierConfig | null {
  const parser = (given.get('parser') ?? new Map([['kind', 'json_block']])) as ValueMap;
  const shaper = given.get('shaper');
  const kind = parser.get('kind') as string;
  if (kind !== 'json_block' && kind !== 'regex_block') return null;
  if (isMap(shaper) && shaper.get('kind') !== 'default') return null;
  const floor = given.get('floor');
  const config = verifierConfig({}, kind, (parser.get('args') ?? new Map()) as ValueMap);
  const args = isMap(shaper) ? shaper.get('args') : null;
  const shape = shaperConfig(isMap(args) ? args : new Map());
  if (!shape) return null;
  return { ...config, ...shape, floor: floor === undefined ? -1 : (toFloat(floor) ?? -1) };
}

/** `list(x)`: a text's characters, an object's keys; null where Python raises. */
function listOf(value: Value | undefined): Value[] | null {
  if (typeof value === 'string') return [...value];
  if (isMap(value)) return [...value.keys()];
  return Array.isArray(value) ? value : null;
}

/** Each query's answer: that of the first position that asks it. */
function answersOf(config: VerifierConfig, completions: readonly Value[], upstream: Value): Map<string, Answer> {
  const answers = new Map<string, Answer>();
  for (const [i, completion] of completions.entries()) {
    const parsed = typeof completion === 'string' ? parseCompletion(config.parser, null, completion) : null;
    const said = Array.isArray(upstream) ? upstream[i] : null;
    const key = parsed && cacheKey(config.platformId, parsed);
    if (key && !answers.has(key)) answers.set(key, answerOf(isMap(said) ? said : null));
  }
  return answers;
}

function answerOf(said: ValueMap | null): Answer {
  const result = said?.get('result');
  if (isMap(result) && pyTruthy(said?.get('from') === 'query_result')) return { kind: 'verdict', data: result };
  // An error's fields stand beside `from`.
  if (said?.get('from') === 'error') {
    const error = said.get('error');
    return { kind: 'denial', denial: denialOf(isMap(error) ? error : said) };
  }
  return { kind: 'unavailable', detail: 'the case gives a floor report' };
}
