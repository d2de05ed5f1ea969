// Where the product is stricter than the Python libraries on purpose: each difference by its name, with what the
// interface says of it and which cases it can touch, decided by what a case gives and by what the reference answered.
// A rule excuses a difference only where it covers the case; everything else differs.

import { decodeJsonBytes } from '../../src/gateway/mapping/json-bytes.ts';
import { dumpJson, JsonError, parseJson } from '../../src/shared/json/json.ts';
import { isMap, pyEqual, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { toFloat } from '../../src/shared/python/number.ts';
import { PROJECTION } from '../../src/workers/verify/wire.ts';
import type { VectorCase } from './vector-file.ts';

interface Rule {
  says: string;
  covers(one: VectorCase): boolean;
}

export const RULES = {
  'nothing-raises': {
    says: 'nothing that a completion contains raises: it earns the floor, alone',
    covers: (one) => one.out.has('raises') || hasBrokenMessages(one),
  },
  'finite-numbers': {
    says: 'a number that is not finite is refused where it arises, in a config, an answer or a reward',
    covers: (one) =>
      !finite(one.in) || !finite(one.out) || /\.(?:inf|nan)\b|[^\w.](?:inf|nan|1e999)\b/i.test(textOf(one)),
  },
  'clip-in-order': {
    says: 'a clip out of order is a config error',
    covers: (one) => {
      const clip = section(one, 'reward')?.get('clip');
      const [low, high] = Array.isArray(clip) ? clip.map(toFloat) : [];
      return typeof low === 'number' && typeof high === 'number' && low > high;
    },
  },
  'wrong-host': {
    says: 'a base URL on the host that does not serve the API is a config error; the SDK finds it when it is built',
    covers: (one) => /api\.ambertrace\.ai/i.test(textOf(one)),
  },
  'key-given-twice': {
    says: 'a key given twice in a file is an error',
    covers: (one) => hasTwice(textOf(one)),
  },
  'no-result-is-not-shaped': {
    says: 'a circuit-open or exhausted verifier is no result, never shaped',
    covers: (one) => floors(one.in) || floors(one.out),
  },
  'equal-queries-once': {
    says: 'equal queries are sent once, and have one answer',
    covers: (one) => asksTwice(one),
  },
  'batch-item-meaning': {
    says: 'every failure inside a batch means what it means alone; results are matched by index; a bad item spoils nobody else',
    covers: (one) =>
      upstreamsOf(one).some((outcome) => outcome.get('do') === 'results' && !everyItemOk(outcome)) ||
      opsOf(one).some(tooFewResults),
  },
  'failures-mean-the-same': {
    says: 'a refusal of key, platform or size and a failing platform mean the same by batch and alone, and are no reward',
    covers: (one) =>
      upstreamsOf(one).some((outcome) => ['sdk-error', 'transient', 'deny'].includes(String(outcome.get('do')))) ||
      (isMap(one.in.get('config')) && (one.in.get('config') as ValueMap).has('client_raises')),
  },
  'garbage-is-a-failure': {
    says: 'a platform that answers garbage counts as failing, and opens the breaker',
    covers: (one) =>
      upstreamsOf(one).some(
        (outcome) =>
          outcome.get('do') === 'value' ||
          (outcome.get('do') === 'ok' && outcome.has('result') && !saysSomething(outcome.get('result'))) ||
          itemsOf(outcome).some(
            (item) => isMap(item) && item.get('status') === 'ok' && !saysSomething(item.get('data')),
          ),
      ),
  },
  'final-observation': {
    says: 'a version 3 file without its final observation does not replay',
    covers: (one) => {
      const file = fileOf(one);
      return !!file && pyEqual(file.version, 3n) && !file.body.has('final_observation');
    },
  },
  'no-empty-episode': {
    says: 'a truncated or empty episode does not replay',
    covers: (one) => (fileOf(one)?.steps.length ?? 1) === 0,
  },
  'seed-is-an-integer': {
    says: 'a seed of another type is another seed',
    covers: (one) => typeof fileOf(one)?.body.get('seed') !== 'bigint',
  },
  'types-count': {
    says: 'replay holds 1, 1.0 and true apart',
    covers: (one) => fileOf(one) !== null && accepted(one),
  },
  'no-extra-keys': {
    says: 'a file with keys that the format does not have is refused',
    covers: (one) => hasExtraKeys(one),
  },
  'exact-total': {
    says: 'a total that is only nearly the sum of its rewards does not hold',
    covers: (one) => {
      const file = fileOf(one);
      const rewards = file?.steps.map((step) => (isMap(step) ? toFloat(step.get('reward')) : null)) ?? [];
      const total = toFloat(file?.body.get('total_reward'));
      return total !== null && rewards.every((x) => x !== null) && total !== rewards.reduce((sum, x) => sum + x, 0);
    },
  },
  unrecorded: {
    says: 'what an older format could not record is named as unrecorded, not held against the file',
    covers: (one) => {
      const file = fileOf(one);
      return !!file && pyEqual(file.version, 1n) && !file.body.has('env_config');
    },
  },
  'broken-file': {
    says: 'a broken file is one line and exit 2, never a stack trace',
    covers: (one) => one.out.has('raises') || traceback(one) || wrongNumbers(one),
  },
} satisfies Record<string, Rule>;

export type RuleName = keyof typeof RULES;

export function ruleFor(one: VectorCase, names: readonly RuleName[]): RuleName | null {
  return names.find((name) => RULES[name].covers(one)) ?? null;
}

function finite(value: Value): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(finite);
  return !isMap(value) || [...value.values()].every(finite);
}

/** The file or YAML text that a case gives, else its input as JSON. */
function textOf(one: VectorCase): string {
  const text = one.in.get('file_text') ?? one.in.get('yaml') ?? one.in.get('body_text');
  return typeof text === 'string' ? text : dumpJson(one.in);
}

function section(one: VectorCase, name: string): ValueMap | null {
  const mapping = one.in.get('mapping');
  const value = isMap(mapping) ? mapping.get(name) : undefined;
  return isMap(value) ? value : null;
}

/** JSON says so itself; of YAML, a key at the same indentation of one block. */
function hasTwice(text: string): boolean {
  try {
    parseJson(text, { duplicates: 'error' });
    return false;
  } catch (error) {
    if (error instanceof JsonError && error.message.includes('given twice')) return true;
  }
  const open: { indent: number; keys: Set<string> }[] = [];
  for (const line of text.split(/\r?\n/)) {
    const match = /^( *)(?:- )?(["']?[\w.-]+["']?) *:(?: |$)/.exec(line);
    for (const flow of line.matchAll(/\{([^{}]*)\}/g)) {
      const keys = [...(flow[1] as string).matchAll(/(?:^|,)\s*["']?([\w.-]+)["']?\s*:/g)].map((m) => m[1]);
      if (new Set(keys).size < keys.length) return true;
    }
    if (!match) continue;
    const indent = (match[1] as string).length;
    while ((open.at(-1)?.indent ?? -1) > indent) open.pop();
    if (open.at(-1)?.indent !== indent) open.push({ indent, keys: new Set() });
    const keys = open.at(-1)?.keys as Set<string>;
    const key = (match[2] as string).replace(/["']/g, '');
    if (keys.has(key)) return true;
    keys.add(key);
  }
  return false;
}

function hasBrokenMessages(one: VectorCase): boolean {
  const [text, hex] = [one.in.get('body_text'), one.in.get('body_hex')];
  const body = typeof hex === 'string' ? decodeJsonBytes(Buffer.from(hex, 'hex')) : text;
  if (typeof body !== 'string') return false;
  try {
    const data = parseJson(body);
    const queries = isMap(data) ? (data.get('query') ?? data.get('queries')) : null;
    return Array.isArray(queries) && queries.some((q) => Array.isArray(q) && isMap(q[0]) && !q.every(isMap));
  } catch {
    return false;
  }
}

/** A floor among what the verifier gives, or among the reports that come of it. */
function floors(value: Value): boolean {
  if (Array.isArray(value)) return value.some(floors);
  if (!isMap(value)) return false;
  const kind = value.get('from') ?? value.get('kind');
  if (typeof kind === 'string' && kind.startsWith('floor')) return true;
  return [...value.values()].some(floors);
}

function opsOf(one: VectorCase): ValueMap[] {
  const script = one.in.get('script');
  return Array.isArray(script) ? script.filter(isMap) : [];
}

export function upstreamsOf(one: VectorCase): ValueMap[] {
  return opsOf(one).flatMap((op) => {
    const upstream = op.get('upstream');
    return Array.isArray(upstream) ? upstream.filter(isMap) : [];
  });
}

function itemsOf(outcome: ValueMap): Value[] {
  const results = outcome.get('results');
  return Array.isArray(results) ? results : [];
}

/** An object with at least one of the fields that were asked for. */
function saysSomething(data: Value | undefined): boolean {
  return isMap(data) && PROJECTION.some((field) => data.has(field));
}

/** Each `ok` with an object that can be read, in the order asked. */
function everyItemOk(outcome: ValueMap): boolean {
  return (
    Array.isArray(outcome.get('results')) &&
    itemsOf(outcome).every(
      (item, i) =>
        isMap(item) &&
        item.get('status') === 'ok' &&
        (item.get('error') ?? null) === null &&
        isMap(item.get('data')) &&
        !overflows(item.get('data') as Value) &&
        item.get('index') === BigInt(i),
    )
  );
}

/** An int that no double holds, on which the library gives up the whole chunk. */
function overflows(value: Value): boolean {
  if (typeof value === 'bigint') return !Number.isFinite(Number(value));
  if (Array.isArray(value)) return value.some(overflows);
  return isMap(value) && [...value.values()].some(overflows);
}

/** A response with fewer results than it was asked queries. */
function tooFewResults(op: ValueMap): boolean {
  const count = Number(op.get('numbered') ?? 0) || ((op.get('items') ?? op.get('completions') ?? []) as Value[]).length;
  const upstream = (op.get('upstream') ?? []) as ValueMap[];
  return upstream.some((outcome, i) => {
    const asked = Math.min(50, count - 50 * i);
    return outcome.get('do') === 'results' && itemsOf(outcome).length < asked;
  });
}

/** Two items of one call with one key, or two completions that are equal. */
function asksTwice(one: VectorCase): boolean {
  const twice = (items: Value | undefined): boolean =>
    Array.isArray(items) && new Set(items.map((x) => dumpJson(x, { sortKeys: true }))).size < items.length;
  const keyed = (items: Value | undefined): boolean => Array.isArray(items) && twice(items.filter((x) => x !== null));
  const logs = one.out.get('log');
  if (Array.isArray(logs) && logs.some((log) => isMap(log) && keyed(log.get('keys')))) return true;
  if (opsOf(one).some((op) => keyed(op.get('items')) || twice(op.get('completions')))) return true;
  return twice(one.in.get('completions'));
}

interface EpisodeFile {
  version: Value;
  envelope: ValueMap;
  body: ValueMap;
  steps: Value[];
}

function fileOf(one: VectorCase): EpisodeFile | null {
  const text = one.in.get('file_text');
  if (typeof text !== 'string') return null;
  try {
    const envelope = parseJson(text);
    const body = isMap(envelope) ? envelope.get('trajectory') : null;
    if (!isMap(envelope) || !isMap(body)) return null;
    const steps = body.has('transitions') ? body.get('transitions') : [];
    return { version: envelope.get('version') ?? null, envelope, body, steps: Array.isArray(steps) ? steps : [] };
  } catch {
    return null;
  }
}

const BODY_KEYS = 'env_id seed initial_observation env_config transitions total_reward final_observation'.split(' ');

function hasExtraKeys(one: VectorCase): boolean {
  const file = fileOf(one);
  if (!file) return false;
  const extra = (map: ValueMap, known: readonly string[]): boolean =>
    [...map.keys()].some((key) => !known.includes(key));
  return extra(file.envelope, ['version', 'trajectory']) || extra(file.body, BODY_KEYS);
}

/** The reference's command replays it without a word. */
function accepted(one: VectorCase): boolean {
  const replay = one.out.get('cli_replay');
  return isMap(replay) && replay.get('exit') === 0n;
}

function traceback(one: VectorCase): boolean {
  return ['cli_show', 'cli_replay', 'cli'].some((name) => {
    const said = one.out.get(name);
    return isMap(said) && said.has('traceback');
  });
}

/** Rewards or a total that are no numbers: the reference loads them and falls over later, or compares them as text. */
function wrongNumbers(one: VectorCase): boolean {
  const file = fileOf(one);
  const isNumber = (x: Value | undefined): boolean => ['number', 'bigint', 'boolean'].includes(typeof x);
  if (!file) return false;
  if (file.body.has('total_reward') && !isNumber(file.body.get('total_reward'))) return true;
  return file.steps.some((step) => isMap(step) && !isNumber(step.get('reward')));
}
