import { describe, expect, test } from 'vitest';
import { dumpJson } from '../../../src/shared/json/json.ts';
import { isMap, pyTruthy, type Value, type ValueMap } from '../../../src/shared/json/value.ts';
import { toInteger } from '../../../src/shared/python/number.ts';
import { str } from '../../../src/shared/python/text.ts';
import { type ParserConfig, resolveVerifier } from '../../../src/shared/spec/verifier-config.ts';
import { cacheKey, cachePayload } from '../../../src/workers/verify/cache-key.ts';
import { type ParsedCompletion, parseCompletion, parsedToValue } from '../../../src/workers/verify/parser.ts';
import { unsupportedFraction } from '../../../src/workers/verify/provenance.ts';
import {
  type AmberReport,
  floorReport,
  reportFromDenial,
  reportFromResult,
  reportToValue,
} from '../../../src/workers/verify/report.ts';
import { type ShaperConfig, shape } from '../../../src/workers/verify/shaper.ts';
import { readVectors, sameAsReference, type VectorCase } from '../../support/vector-file.ts';

const NOT_RUN = new Map([
  ['cache.keys-ints', 'facts come from JSON: their keys are text'],
  ['cache.keys-bool-none', 'facts come from JSON: their keys are text'],
  ['cache.keys-floats', 'facts come from JSON: their keys are text'],
  ['cache.keys-tuple', 'facts come from JSON: their keys are text'],
  ['reward.weights-null', 'such a weight is refused with the config'],
]);

/** Runs every case; returns the ids that differ, so that one assertion names them all. */
function differing(name: string, equal: (one: VectorCase) => boolean): string[] {
  return readVectors(name)
    .filter((one) => !NOT_RUN.has(one.id) && !equal(one))
    .map((one) => one.id);
}

const raises = (one: VectorCase): boolean => one.out.has('raises');

function parserConfig(args: ValueMap, name: string): ParserConfig {
  const domain = new Map<string, Value>([
    ['platform_id', 1n],
    ['parser', name],
    ['parser_args', args],
  ]);
  const { config } = resolveVerifier(new Map([['domain', domain]]), null);
  if (config) return config.parser;
  // A pattern that does not compile: refused with the config; here only what the parser itself does is asked.
  const answerPattern = str(args.get('answer_pattern') ?? '');
  const factPattern = str(args.get('fact_pattern') ?? '');
  return { kind: 'regex_block', answerPattern, factPattern, queryTemplate: '', broken: null };
}

function parsedFromValue(value: ValueMap): ParsedCompletion {
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

function reportFromValue(value: ValueMap): AmberReport {
  return {
    ...floorReport(''),
    proofChecked: value.get('proof_checked') as boolean,
    decision: value.get('decision') ?? null,
    schemaVersion: numeric(value.get('schema_version')),
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

function numeric(value: Value | undefined): bigint | null {
  return typeof value === 'bigint' || typeof value === 'number' ? toInteger(value) : null;
}

function checker(options: ValueMap): { checkBooleans: boolean; caseSensitive: boolean } {
  return {
    checkBooleans: pyTruthy(options.get('check_booleans')),
    caseSensitive: pyTruthy(options.get('case_sensitive')),
  };
}

function shaperConfig(given: ValueMap): ShaperConfig {
  const weights = given.get('weights') as ValueMap | undefined;
  const provenance = given.get('provenance');
  return {
    weights: weights
      ? Object.fromEntries([...weights].map(([name, x]) => [name, Number(x)]))
      : { format: 0.1, certified: 0.5, correctness: 1, graded: 0.3, rejected_penalty: 0.2, unsupported_penalty: 0.3 },
    clip: ((given.get('clip') ?? [-1, 2]) as number[]).map(Number) as [number, number],
    requireSupportedSchema: pyTruthy(given.get('require_supported_schema')),
    provenance: isMap(provenance) ? checker(provenance) : null,
  };
}

// Stricter on purpose: a NaN or an infinite weight or total is refused, where the library clips it to the top reward.
function hasNonFinite(one: VectorCase): boolean {
  return /NaN|Infinity/.test(dumpJson(one.in) + dumpJson(one.out));
}

describe('the reference vectors of the Python library', () => {
  test('a completion parses to the same payload; where the library raises, it does not parse', () => {
    const differ = differing('at-parsers', (one) => {
      const completion = one.in.get('completion') as Value;
      const config = parserConfig(one.in.get('parser_args') as ValueMap, one.in.get('parser') as string);
      const parsed = typeof completion === 'string' ? parseCompletion(config, null, completion) : null;
      if (raises(one)) return parsed === null;
      const ours = parsed && parsedToValue(parsed).set('prompt', one.in.get('prompt') ?? null);
      return sameAsReference(ours, one.out.get('parsed') as Value);
    });
    expect(differ).toEqual([]);
  });

  test('an answer becomes the same report', () => {
    const differ = differing('at-reports', (one) => {
      const from = one.in.get('from');
      let report: AmberReport;
      if (from === 'floor') report = floorReport(one.in.get('reason') as string);
      else if (from === 'error') {
        const error = one.in.get('error') as ValueMap;
        const message = (error.get('message') as string) || (error.get('class') as string);
        report = reportFromDenial({ message, rejectedFacts: error.get('rejected_facts') ?? null });
      } else {
        const result = one.in.get('result') as Value;
        if (!isMap(result)) return raises(one);
        report = reportFromResult(result);
      }
      if (raises(one)) return true;
      const expected = one.out.get('report') as ValueMap;
      return [...reportToValue(report)].every(([key, x]) => sameAsReference(x, expected.get(key) as Value));
    });
    expect(differ).toEqual([]);
  });

  test('a report is shaped to the same total and the same components, to the last digit', () => {
    const differ = differing('at-rewards', (one) => {
      if (one.kind === 'checker') {
        const options = checker(one.in.get('checker') as ValueMap);
        const ours = unsupportedFraction(one.in.get('facts') as ValueMap, one.in.get('prompt') as string, options);
        return Object.is(ours, one.out.get('unsupported_fraction'));
      }
      const shaped = shape(
        shaperConfig(one.in.get('shaper') as ValueMap),
        parsedFromValue(one.in.get('parsed') as ValueMap),
        reportFromValue(one.in.get('report') as ValueMap),
        one.in.get('gold') ?? null,
        one.in.get('criteria_gold') ?? null,
      );
      if (raises(one)) return shaped.total === null;
      const total = Number(one.out.get('total'));
      if (!Number.isFinite(total) || shaped.total === null) return shaped.total === null && hasNonFinite(one);
      const expected = one.out.get('components') as ValueMap;
      return (
        total === shaped.total &&
        [...expected].every(([key, x]) => Number(x) === shaped.components[key]) &&
        [...expected.keys()].join() === Object.keys(shaped.components).join()
      );
    });
    expect(differ).toEqual([]);
  });

  test('a query has the same cache key, from the same text', () => {
    const differ = differing('at-cache-keys', (one) => {
      const platform = one.in.get('platform_id') as bigint;
      let query: Pick<ParsedCompletion, 'query' | 'facts' | 'relations' | 'predictions'>;
      if (one.kind === 'parsed') {
        const config = parserConfig(new Map(), one.in.get('parser') as string);
        query = parseCompletion(config, null, one.in.get('completion') as string) as ParsedCompletion;
        if (query.query !== one.out.get('query')) return false;
      } else query = parsedFromValue(one.in);
      return (
        sameAsReference(cachePayload(platform, query), one.out.get('payload') as Value) &&
        cacheKey(platform, query) === one.out.get('sha256')
      );
    });
    expect(differ).toEqual([]);
  });
});
