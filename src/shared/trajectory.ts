// The trajectory: crucible's record of one episode, its file format v3 byte for byte, its fingerprint, and a reader
// for v1, v2 and v3. What an older format could not know stays unrecorded. The reader refuses what is no such file
// (wrong structure, unknown keys, a key given twice, sums over what is no number) with one line, never a stack trace.

import { createHash } from 'node:crypto';
import { inputError } from './errors.ts';
import { dumpJson, JsonError, parseJson } from './json/json.ts';
import { isMap, pyEqual, type Value, type ValueMap } from './json/value.ts';
import { repr } from './python/text.ts';
import { pyDecode } from './python/utf8.ts';

export const FORMAT_VERSION = 3n;

interface Transition {
  observation: Value;
  action: Value;
  reward: Value;
  done: Value;
  info: Value;
  digest: Value;
}

/** Values are as they were read: `replay` demands their types, `show` does not. */
export interface Trajectory {
  version: Value;
  envId: Value;
  seed: Value;
  initialObservation: Value;
  /** Undefined: a v1 file, which had no such field. */
  envConfig: Value | undefined;
  transitions: Transition[];
  totalReward: Value;
  /** Undefined: not recorded. */
  finalObservation: Value | undefined;
}

const TRANSITION_KEYS = ['observation', 'action', 'reward', 'done', 'info', 'digest'] as const;
const TRAJECTORY_KEYS = [
  'env_id',
  'seed',
  'initial_observation',
  'env_config',
  'transitions',
  'total_reward',
  'final_observation',
];
/** Deeper than anything that the farm records: an action nests at most 900 levels, and stands inside this file. */
const MAX_DEPTH = 1_000;

/** A trajectory's text is made to bytes in pieces of this size. */
const PIECE_CHARS = 256 * 1024;

/** Python's running sum of the rewards as they were added, from 0.0. */
export function totalReward(rewards: Iterable<number>): number {
  let total = 0;
  for (const reward of rewards) total += reward;
  return total;
}

/** The file's bytes, as `Trajectory.save` writes them. Made in pieces: together they may be longer than a string can be. */
export function serializeTrajectory(trajectory: Trajectory): Buffer {
  const chunks: Buffer[] = [];
  let text = '';
  const put = (piece: string): void => {
    text += piece;
    if (text.length < PIECE_CHARS) return;
    chunks.push(Buffer.from(text, 'latin1'));
    text = '';
  };
  const at = (value: Value, level: number): string => dumpJson(value, { sortKeys: true, indent: 2, level });
  put('{\n  "trajectory": {');
  let comma = '\n    ';
  for (const [key, value] of topFields(trajectory)) {
    put(`${comma}"${key}": `);
    comma = ',\n    ';
    if (key !== 'transitions') put(at(value, 2));
    else if (trajectory.transitions.length === 0) put('[]');
    else {
      let open = '[\n      {';
      for (const { action, digest, done, info, observation, reward } of trajectory.transitions) {
        put(
          `${open}\n        "action": ${at(action, 4)},\n        "digest": ${at(digest, 4)},\n        "done": ${at(done, 4)}`,
        );
        put(`,\n        "info": ${at(info, 4)},\n        "observation": `);
        put(at(observation, 4));
        put(`,\n        "reward": ${at(reward, 4)}\n      }`);
        open = ',\n      {';
      }
      put('\n    ]');
    }
  }
  put('\n  },\n  "version": 3\n}');
  const last = Buffer.from(text, 'latin1');
  return chunks.length === 0 ? last : Buffer.concat([...chunks, last]);
}

/** The hash over the canonical text, without envelope: a stable id for exactly this episode. */
export function fingerprint(trajectory: Trajectory): string {
  const hash = createHash('sha256');
  for (const piece of canonicalPieces(trajectory)) hash.update(piece, 'latin1');
  return hash.digest('hex');
}

/** `Trajectory.to_json`: the text that is hashed. */
export function canonicalText(trajectory: Trajectory): string {
  return [...canonicalPieces(trajectory)].join('');
}

function* canonicalPieces(trajectory: Trajectory): Generator<string> {
  let first = true;
  for (const [key, value] of topFields(trajectory)) {
    yield `${first ? '{' : ', '}${dumpJson(key)}: `;
    first = false;
    if (key !== 'transitions') yield dumpJson(value, { sortKeys: true });
    else {
      yield '[';
      let begun = false;
      for (const transition of trajectory.transitions) {
        if (begun) yield ', ';
        begun = true;
        let inside = false;
        for (const [name, part] of transitionFields(transition)) {
          yield `${inside ? ', ' : '{'}${dumpJson(name)}: `;
          inside = true;
          yield dumpJson(part, { sortKeys: true });
        }
        yield '}';
      }
      yield ']';
    }
  }
  yield '}';
}

/** In sorted order, as both encodings have them. The transitions are written by the callers. */
function topFields(t: Trajectory): [string, Value][] {
  const fields: [string, Value][] = [
    ['env_config', t.envConfig === undefined ? new Map() : t.envConfig],
    ['env_id', t.envId],
  ];
  if (t.finalObservation !== undefined) fields.push(['final_observation', t.finalObservation]);
  fields.push(['initial_observation', t.initialObservation], ['seed', t.seed], ['total_reward', t.totalReward]);
  fields.push(['transitions', null]);
  return fields;
}

function transitionFields(t: Transition): [string, Value][] {
  return [
    ['action', t.action],
    ['digest', t.digest],
    ['done', t.done],
    ['info', t.info],
    ['observation', t.observation],
    ['reward', t.reward],
  ];
}

/** What the record says against itself: a total that is not the sum of its rewards. */
export function integrityMismatches(trajectory: Trajectory): string[] {
  const sum = trajectory.transitions.map((t) => t.reward).reduce<Value>(pyAdd, 0n);
  // An infinite total is equal to itself, and still no reward.
  if (pyEqual(sum, trajectory.totalReward) && Number.isFinite(Number(sum))) return [];
  return [`total reward: recorded ${repr(trajectory.totalReward)} != sum of step rewards ${repr(sum)}`];
}

/** Python's `a + b` of numbers: ints stay exact, a float on either side makes a float. */
function pyAdd(a: Value, b: Value): Value {
  if (typeof a !== 'number' && typeof b !== 'number') return BigInt(a as bigint) + BigInt(b as bigint);
  return Number(a) + Number(b);
}

/** Reads a saved trajectory. `name` is what the messages call it. Throws FarmError (exit 2, `trajectory_invalid`). */
export function parseTrajectory(content: Uint8Array | string, name = 'trajectory'): Trajectory {
  const refuse = (message: string): Error => inputError('trajectory_invalid', `${name}: ${message}`);
  let text = content;
  if (typeof text !== 'string') {
    const decoded = pyDecode(text);
    if (!decoded.ok) throw refuse(`not UTF-8: ${decoded.error}`);
    text = decoded.text;
  }
  let envelope: Value;
  try {
    envelope = parseJson(text, { duplicates: 'error', maxDepth: MAX_DEPTH });
  } catch (error) {
    if (error instanceof JsonError) throw refuse(`not JSON: ${error.message}`);
    throw error;
  }
  const fault = (message: string): never => {
    throw refuse(message);
  };
  if (!isMap(envelope)) return fault('the file must hold an object with version and trajectory');
  const version = envelope.get('version') ?? null;
  // As in Python, 3.0 and true count here; `replay` does not let them pass.
  if (![1n, 2n, 3n].some((known) => pyEqual(version, known))) {
    return fault(`unsupported trajectory format version ${repr(version)} (this build reads versions [1, 2, 3])`);
  }
  const body = envelope.get('trajectory');
  if (!isMap(body)) return fault(body === undefined ? 'the key trajectory is missing' : 'trajectory must be an object');
  refuseUnknown(envelope, ['version', 'trajectory'], 'the file', fault);
  refuseUnknown(body, TRAJECTORY_KEYS, 'trajectory', fault);
  for (const key of ['env_id', 'seed', 'initial_observation']) {
    if (!body.has(key)) fault(`trajectory.${key} is missing`);
  }
  const steps = body.has('transitions') ? body.get('transitions') : [];
  if (!Array.isArray(steps)) return fault('trajectory.transitions must be a list');
  const total = body.has('total_reward') ? (body.get('total_reward') as Value) : 0;
  if (!isNumber(total)) fault('trajectory.total_reward must be a number');
  return {
    version,
    envId: body.get('env_id') as Value,
    seed: body.get('seed') as Value,
    initialObservation: body.get('initial_observation') as Value,
    envConfig: body.has('env_config')
      ? (body.get('env_config') as Value)
      : pyEqual(version, 1n)
        ? undefined
        : new Map(),
    transitions: steps.map((step, i) => readTransition(step, `trajectory.transitions[${i}]`, fault)),
    totalReward: total,
    finalObservation: body.get('final_observation'),
  };
}

type Fault = (message: string) => never;

function readTransition(step: Value, path: string, fault: Fault): Transition {
  if (!isMap(step)) return fault(`${path} must be an object`);
  for (const key of TRANSITION_KEYS) if (!step.has(key)) fault(`${path}.${key} is missing`);
  refuseUnknown(step, TRANSITION_KEYS, path, fault);
  const [observation, action, reward, done, info, digest] = TRANSITION_KEYS.map((key) => step.get(key) as Value) as [
    Value,
    Value,
    Value,
    Value,
    Value,
    Value,
  ];
  if (!isNumber(reward)) fault(`${path}.reward must be a number`);
  return { observation, action, reward, done, info, digest };
}

function refuseUnknown(map: ValueMap, known: readonly string[], path: string, fault: Fault): void {
  for (const key of map.keys()) if (!known.includes(key)) fault(`${path} has the unknown key ${repr(key)}`);
}

function isNumber(value: Value): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean';
}
