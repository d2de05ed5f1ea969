// What a run is, as one canonical document: two readings of equal content give equal bytes. Files stand in it by
// the hash of their content; the store does not (where results lie is not what they are), nor do names of files.
// A run id that is used again must come with the same document.

import { sha256 } from '../claim.ts';
import { dumpJson, toValue } from '../json/json.ts';
import { isMap, mapOf, sameValue, type Value, type ValueMap } from '../json/value.ts';
import type { LineFile } from './file.ts';
import type { Policy } from './source.ts';
import type { RunSpec } from './spec.ts';
import type { VerifierConfig } from './verifier-config.ts';

/** Sections that the farm keeps for trainers and does not read. */
const KEPT = ['training', 'dataset', 'eval'] as const;

export function runDocument(
  spec: Omit<RunSpec, 'document'>,
  root: ValueMap,
  tasks: LineFile,
  policy: Policy,
): ValueMap {
  const { groups, sandbox, limits } = spec;
  const document: ValueMap = new Map<string, Value>([
    ['name', spec.name],
    ['seed', spec.seed],
    ['group_size', BigInt(spec.groupSize)],
    ['tasks', contentOf(tasks)],
    ['policy', policyDocument(policy)],
    ['max_steps', BigInt(spec.maxSteps)],
    [
      'groups',
      plain({
        close: groups.close,
        at_least: groups.atLeast,
        deadline_s: groups.deadlineS,
        refill: groups.refill,
        // Only where it is asked for: a run that was begun without it is the same run.
        ...(groups.refillDegenerate === 0 ? {} : { refill_degenerate: groups.refillDegenerate }),
      }),
    ],
    [
      'sandbox',
      plain({
        image: sandbox.image,
        memory_mb: sandbox.memoryMb,
        cpus: sandbox.cpus,
        pids: sandbox.pids,
        tmpfs_mb: sandbox.tmpfsMb,
        network: sandbox.network,
        timeout_s: sandbox.timeoutS,
        output_kb: sandbox.outputKb,
        exec: sandbox.exec,
        runtime: sandbox.runtime,
        isolation: sandbox.isolation,
      }),
    ],
    ['advantage', spec.advantage],
    ['audit', plain({ fraction: 0 })],
    [
      'limits',
      plain({
        in_flight: limits.inFlight,
        verifier_calls: limits.verifierCalls,
        policy_tokens: limits.policyTokens,
        paused_s: limits.pausedS,
      }),
    ],
  ]);
  if (spec.verifier !== null) document.set('verifier', verifierValue(spec.verifier, root));
  return keep(document, root);
}

/** A file with ambertrace-rlvr's sections alone. */
export function verifierDocument(config: VerifierConfig, root: ValueMap): ValueMap {
  return keep(mapOf({ verifier: verifierValue(config, root) }), root);
}

/** Stands for a field that is not there. */
export const NOTHING = '(nothing)';

/** `seed: 1 → 2`, a line for each field that differs. */
export function diffDocuments(before: ValueMap, after: ValueMap): string[] {
  const lines: string[] = [];
  const compare = (a: Value | undefined, b: Value | undefined, path: string): void => {
    if (a !== undefined && b !== undefined && sameValue(a, b)) return;
    if (isMap(a) && isMap(b)) {
      if (a.has('sha256') && b.has('sha256') && a.get('sha256') !== b.get('sha256')) {
        lines.push(`${path}: the content changed (sha256 ${brief(a.get('sha256'))} → ${brief(b.get('sha256'))})`);
        return;
      }
      for (const key of new Set([...a.keys(), ...b.keys()]))
        compare(a.get(key), b.get(key), path === '' ? key : `${path}.${key}`);
      return;
    }
    lines.push(`${path}: ${brief(a)} → ${brief(b)}`);
  };
  compare(before, after, '');
  return lines;
}

function brief(value: Value | undefined): string {
  if (value === undefined) return NOTHING;
  const text = typeof value === 'string' ? value : dumpJson(value);
  return text.length > 40 ? `${text.slice(0, 12)}…` : text;
}

function contentOf(file: LineFile): ValueMap {
  return mapOf({ sha256: file.sha256, lines: BigInt(file.count) });
}

function policyDocument(policy: Policy): ValueMap {
  if (policy.kind === 'completions')
    return mapOf({ kind: policy.kind, completions: contentOf(policy.file), cycle: policy.cycle });
  const content = dumpJson(policy.actions, { compact: true });
  const actions = mapOf({ sha256: sha256(content), count: BigInt(policy.actions.length) });
  return mapOf({ kind: policy.kind, actions });
}

// The address may come from the environment; a run may be resumed with the verifier somewhere else.
function verifierValue(config: VerifierConfig, root: ValueMap): Value {
  const domain = root.get('domain');
  const own = isMap(domain) && domain.has('base_url');
  return plain({
    platform_id: config.platformId,
    base_url: own ? config.baseUrl : null,
    parser: parserData(config.parser),
    weights: config.weights,
    clip: [...config.clip],
    floor: config.floor,
    batch_size: config.batchSize,
    max_concurrency: config.maxConcurrency,
    cache: config.cache,
    // Only where it is given: a run that was begun without it is the same run.
    ...(config.requestsPerSecond === null ? {} : { requests_per_second: config.requestsPerSecond }),
  });
}

/** By the names that the file has for them. */
function parserData(parser: VerifierConfig['parser']): Record<string, unknown> {
  const query = { query_template: parser.queryTemplate };
  if (parser.kind === 'regex_block')
    return { kind: parser.kind, answer_pattern: parser.answerPattern, fact_pattern: parser.factPattern, ...query };
  const { answerKey, factsKey, relationsKey } = parser;
  return { kind: parser.kind, answer_key: answerKey, facts_key: factsKey, relations_key: relationsKey, ...query };
}

function keep(document: ValueMap, root: ValueMap): ValueMap {
  for (const key of KEPT) {
    const value = root.get(key);
    if (value !== undefined && value !== null) document.set(key, finite(value));
  }
  return document;
}

function plain(data: unknown): Value {
  return finite(toValue(data));
}

// The document is strict JSON, and what trainers keep in their sections need not be.
function finite(value: Value): Value {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (Array.isArray(value)) return value.map(finite);
  return isMap(value) ? new Map([...value].map(([key, child]) => [key, finite(child)])) : value;
}
