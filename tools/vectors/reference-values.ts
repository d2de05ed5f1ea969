// The reference's values as the product's own: parser arguments as a config, a parsed completion, a report, a shaper.

import { isMap, pyTruthy, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { toFloat, toInteger } from '../../src/shared/python/number.ts';
import { str } from '../../src/shared/python/text.ts';
import {
  type ParserConfig,
  type RewardWeights,
  resolveVerifier,
  type VerifierConfig,
} from '../../src/shared/spec/verifier-config.ts';
import type { ParsedCompletion } from '../../src/workers/verify/parser.ts';
import type { ProvenanceOptions } from '../../src/workers/verify/provenance.ts';
import { type AmberReport, floorReport } from '../../src/workers/verify/report.ts';
import type { ShaperConfig } from '../../src/workers/verify/shaper.ts';

/** A config of platform 44 with this parser and these sections; throws where the product refuses it. */
export function verifierConfig(
  sections: Record<string, Value | undefined>,
  parser: string = 'json_block',
  args: ValueMap = new Map(),
): VerifierConfig {
  const domain = new Map<string, Value>([
    ['platform_id', 44n],
    ['parser', parser],
    ['parser_args', args],
  ]);
  const given = Object.entries(sections).filter((entry): entry is [string, Value] => entry[1] !== undefined);
  const { config, problems } = resolveVerifier(new Map<string, Value>([['domain', domain], ...given]), null);
  if (!config) throw new Error(`the config is refused: ${problems.map((p) => `${p.path} ${p.message}`).join('; ')}`);
  return config;
}

/** Null where the product refuses the arguments: a pattern that does not compile is found with the config. */
export function parserConfig(name: string, args: ValueMap): ParserConfig | null {
  try {
    return verifierConfig({}, name, args).parser;
  } catch {
    const pattern = (key: string): string => str(args.get(key) ?? '');
    if (name !== 'regex_block') return null;
    return {
      kind: name,
      answerPattern: pattern('answer_pattern'),
      factPattern: pattern('fact_pattern'),
      queryTemplate: '',
      broken: null,
    };
  }
}

export function parsedFromValue(value: ValueMap): ParsedCompletion {
  return {
    query: value.get('query') as string,
    facts: value.get('facts') as ValueMap,
    proposedAnswer: value.get('proposed_answer') ?? null,
    relations: (value.get('relations') ?? null) as ValueMap | null,
    predictions: (value.get('predictions') ?? null) as ValueMap | null,
    rawBlock: null,
    prompt: (value.get('prompt') ?? null) as string | null,
    reasoning: (value.get('reasoning') ?? null) as string | null,
  };
}

export function reportFromValue(value: ValueMap): AmberReport {
  const version = value.get('schema_version');
  return {
    ...floorReport(''),
    proofChecked: value.get('proof_checked') as boolean,
    decision: value.get('decision') ?? null,
    schemaVersion: typeof version === 'bigint' || typeof version === 'number' ? toInteger(version) : null,
    rules: (value.get('rules') as ValueMap[]).map((rule) => ({
      name: rule.get('name') as string,
      fired: rule.get('fired') as boolean,
      required: pyTruthy(rule.get('required')),
      ruleType: null,
      reason: null,
    })),
    rejectedFacts: (value.get('rejected_facts') as ValueMap[]).map((fact) => ({
      field: fact.get('field') as string,
      value: null,
      reasons: [],
    })),
    factSummary: value.get('fact_summary') as Map<string, bigint>,
  };
}

export function checkerOptions(options: ValueMap): ProvenanceOptions {
  return {
    checkBooleans: pyTruthy(options.get('check_booleans')),
    caseSensitive: pyTruthy(options.get('case_sensitive')),
  };
}

const DEFAULT_WEIGHTS: RewardWeights = {
  format: 0.1,
  certified: 0.5,
  correctness: 1,
  graded: 0.3,
  rejected_penalty: 0.2,
  unsupported_penalty: 0.3,
  consistency: 0,
};
/** Weights that are given replace all of the default ones; what is not among them counts as 0. */
const NO_WEIGHTS = Object.fromEntries(
  Object.keys(DEFAULT_WEIGHTS).map((name) => [name, 0]),
) as unknown as RewardWeights;

/** Null where a weight or an end of the clip is no number, which the product refuses with the config. */
export function shaperConfig(given: ValueMap): (ShaperConfig & { weights: RewardWeights }) | null {
  const weights = given.get('weights');
  const clip = (given.get('clip') ?? [-1, 2]) as Value[];
  const provenance = given.get('provenance');
  const numbers = [...clip, ...(isMap(weights) ? weights.values() : [])];
  if (numbers.some((x) => typeof x === 'string' || toFloat(x) === null)) return null;
  if (clip.length !== 2 || (given.has('weights') && !isMap(weights))) return null;
  return {
    weights: isMap(weights)
      ? { ...NO_WEIGHTS, ...Object.fromEntries([...weights].map(([name, x]) => [name, toFloat(x) as number])) }
      : DEFAULT_WEIGHTS,
    clip: clip.map((x) => toFloat(x) as number) as [number, number],
    requireSupportedSchema: pyTruthy(given.get('require_supported_schema')),
    provenance: isMap(provenance) ? checkerOptions(provenance) : null,
  };
}
