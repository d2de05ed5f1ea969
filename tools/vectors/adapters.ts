// OpenRLHF, veRL and TRL: a request, the call of the reward function that it becomes, and the answer. The reward
// function is the case's own; `ambertrace` is the product's, over a platform that certifies what is proposed.

import { Keys } from '../../src/gateway/keys.ts';
import { readRewardRequest, refusal, refusalOf, rewardBody } from '../../src/gateway/mapping/openrlhf.ts';
import { type RewardCall, rewardsOf } from '../../src/gateway/mapping/reward-call.ts';
import { trlCall } from '../../src/gateway/mapping/trl.ts';
import { verlCall } from '../../src/gateway/mapping/verl.ts';
import { dumpJson, parseJson } from '../../src/shared/json/json.ts';
import { isMap, pyEqual, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { toFloat } from '../../src/shared/python/number.ts';
import { lengthOf } from '../../src/shared/python/text.ts';
import { parseCompletion } from '../../src/workers/verify/parser.ts';
import { verifyCompletions } from '../../src/workers/verify/verify.ts';
import { verifierConfig } from './reference-values.ts';
import type { RuleName } from './rules.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, judge, notRun, type Verdict } from './verdict.ts';

const RULES: RuleName[] = ['nothing-raises', 'finite-numbers', 'equal-queries-once'];

/** What the function answers: a value, or null where it raised. */
type Answered = { value: Value } | null;

export async function runOpenRlhf(one: VectorCase): Promise<Verdict> {
  const app = one.in.get('app') as ValueMap;
  const floor = toFloat(app.get('floor') ?? -1) ?? -1;
  const head = refusalOf(
    one.in.get('method') as string,
    one.in.get('path') as string,
    (app.get('endpoint') ?? undefined) as string | undefined,
  );
  if (head) return sameResponse(one, head.status, head.body, null);
  if (!mayCall(one, app)) {
    const refused = refusal(401, 'unauthorized');
    return sameResponse(one, refused.status, refused.body, null);
  }
  const body = bodyOf(one);
  if (!body) return notRun('a Content-Length that Node answers itself, before any program sees the request');
  const call = readRewardRequest(body, (app.get('gold_key') ?? 'gold') as string);
  if ('status' in call) return sameResponse(one, call.status, call.body, null);
  const answered = await callFunction(one, call);
  const rewards = answered
    ? rewardsOf(answered.value, call.completions.length, floor)
    : call.completions.map(() => floor);
  // Completions that are unreadable never reach the function; theirs is the floor.
  const all = merged(call, rewards, floor);
  return sameResponse(one, 200, rewardBody(all), call);
}

export async function runVerl(one: VectorCase): Promise<Verdict> {
  const adapter = one.in.get('adapter') as ValueMap;
  const floor = toFloat(adapter.get('floor') ?? -1) ?? -1;
  const given = one.in.get('call') as ValueMap;
  const args = (given.get('args') ?? []) as Value[];
  const named = (given.get('kwargs') ?? new Map()) as ValueMap;
  const call = verlCall(
    {
      dataSource: args[0] ?? named.get('data_source'),
      solution: args.length > 1 ? (args[1] as Value) : named.get('solution_str'),
      groundTruth: args[2] ?? named.get('ground_truth'),
      extraInfo: args[3] ?? named.get('extra_info'),
    },
    (adapter.get('gold_key') ?? 'gold') as string,
  );
  const answered = call.completions[0] === null ? null : await callFunction(one, call);
  const score = answered ? firstOf(answered.value, floor) : floor;
  // A floor is returned in the type that it was given in; ours is a number.
  if (one.out.has('raises') || !pyEqual(score, one.out.get('score') as Value))
    return judge(one, false, `a score of ${score}`, RULES);
  return judge(one, sameCalls(one, call), 'another call', RULES);
}

export async function runTrl(one: VectorCase): Promise<Verdict> {
  const call = trlCall(
    one.in.get('prompts') as Value[],
    one.in.get('completions') as Value[],
    one.in.get('columns') as ValueMap,
  );
  const kind = (one.in.get('reward_fn') as ValueMap).get('kind');
  if (one.out.has('raises')) {
    if (kind === 'raises') return notRun("a user's own function that raises: the library's adapter lets it out");
    return judge(one, false, 'a call where the library raises', call.completions.includes(null) ? RULES : []);
  }
  if (!sameCalls(one, call)) return judge(one, false, 'another call', RULES);
  if (kind === 'returns') return judge(one, true, '');
  const answered = await callFunction(one, call);
  return judge(
    one,
    answered !== null && pyEqual(answered.value, one.out.get('rewards') as Value),
    'other rewards',
    RULES,
  );
}

/** The rewards for the items that can be read, in their places. */
function merged(call: RewardCall, rewards: number[], floor: number): number[] {
  if (!call.completions.includes(null)) return rewards;
  let next = 0;
  return call.completions.map((completion) => (completion === null ? floor : (rewards[next++] ?? floor)));
}

function firstOf(value: Value, floor: number): number {
  const first = typeof value === 'string' || Array.isArray(value) ? value[0] : undefined;
  return first === undefined ? floor : (rewardsOf([first], 1, floor)[0] as number);
}

function mayCall(one: VectorCase, app: ValueMap): boolean {
  const env = one.in.get('env');
  const key = app.has('api_key') ? app.get('api_key') : isMap(env) ? env.get('AMBERTRACE_RLVR_REWARD_KEY') : null;
  const headers = Object.fromEntries(
    [...(one.in.get('headers') as ValueMap)].map(([name, value]) => [name.toLowerCase(), value as string]),
  );
  try {
    new Keys((key ?? null) as string | null).admit({ host: '127.0.0.1', ...headers });
    return true;
  } catch {
    return false;
  }
}

/** The bytes that Node would hand over: as many as Content-Length says. */
function bodyOf(one: VectorCase): Buffer | null {
  const hex = one.in.get('body_hex');
  const bytes =
    typeof hex === 'string' ? Buffer.from(hex, 'hex') : Buffer.from((one.in.get('body_text') ?? '') as string);
  const length = one.in.get('content_length') ?? null;
  if (length === 'auto') return bytes;
  if (length === null) return Buffer.alloc(0);
  return /^[ \t]*\d+[ \t]*$/.test(String(length)) ? bytes.subarray(0, Number(length)) : null;
}

function sameResponse(one: VectorCase, status: number, body: string, call: RewardCall | null): Verdict {
  if (one.out.has('raises')) return judge(one, false, `status ${status} where the app raises`, RULES);
  const theirs = (one.out.get('status') as string).slice(0, 3);
  if (String(status) !== theirs) return differ(`status ${status}`);
  if (!sameBody(one, body)) return judge(one, false, `the body ${body.slice(0, 200)}`, RULES);
  return judge(one, sameCalls(one, call), 'another call', RULES);
}

/** Byte for byte; but a floor that is an int stays one there, and a reward is a float here. */
function sameBody(one: VectorCase, body: string): boolean {
  const theirs = one.out.get('body_text') as string;
  if (body === theirs) return true;
  const floor = (one.in.get('app') as ValueMap).get('floor');
  return typeof floor === 'bigint' && pyEqual(parseJson(body), parseJson(theirs));
}

function sameCalls(one: VectorCase, call: RewardCall | null): boolean {
  const calls = one.out.get('reward_fn_calls') as Value[];
  const ours = call && !call.completions.includes(null) ? [callValue(call)] : [];
  return sameAsReference(ours, calls);
}

function callValue(call: RewardCall): ValueMap {
  return new Map<string, Value>([
    ['prompts', call.prompts],
    ['completions', call.completions],
    ['metadata', call.metadata],
  ]);
}

async function callFunction(one: VectorCase, call: RewardCall): Promise<Answered> {
  const fn = one.in.get('reward_fn') as ValueMap;
  const readable = call.completions.flatMap((text, i) => (text === null ? [] : [{ text, i }]));
  switch (fn.get('kind')) {
    case 'const':
      return { value: readable.map(() => fn.get('value') as Value) };
    case 'length':
      return { value: readable.map(({ text }) => lengthOf(text)) };
    case 'returns':
      return { value: fn.get('value') ?? null };
    case 'gold-match':
      return {
        value: readable.map(({ text, i }) => (pyEqual(call.metadata[i]?.get('gold') ?? null, text) ? 1 : 0)),
      };
    case 'ambertrace':
      return { value: await certified(call, fn.get('floor')) };
    default:
      return null;
  }
}

/** The product's rewards over a platform that certifies each proposed answer. */
async function certified(call: RewardCall, floor: Value | undefined): Promise<Value> {
  const config = verifierConfig({ verifier: floor === undefined ? undefined : new Map([['floor', floor]]) });
  const items = call.completions
    .slice(0, call.prompts.length)
    .map((completion, i) => ({ prompt: call.prompts[i] as Value, completion, metadata: call.metadata[i] as Value }));
  const answers = new Map<string, Value>();
  for (const { completion } of items) {
    const parsed = completion === null ? null : parseCompletion(config.parser, null, completion);
    if (parsed) answers.set(dumpJson(parsed.facts), parsed.proposedAnswer);
  }
  const results = await verifyCompletions(config, items, {
    ask: async (queries) =>
      queries.map((query) => ({
        kind: 'verdict',
        data: new Map<string, Value>([
          ['decision', answers.get(dumpJson(query.facts)) ?? null],
          ['proof_checked', true],
        ]),
      })),
  });
  return results.map((result) => (result.status === 'completed' ? result.reward : null));
}
