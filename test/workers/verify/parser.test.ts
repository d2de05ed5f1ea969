import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { dumpJson, parseJson } from '../../../src/shared/json/json.ts';
import type { Value, ValueMap } from '../../../src/shared/json/value.ts';
import { resolveVerifier } from '../../../src/shared/spec/verifier-config.ts';
import { parseCompletion, parsedToValue } from '../../../src/workers/verify/parser.ts';

// Random completions (tags in every case and script, white space of every kind, facts, patterns) with what the
// Python library parses from them.
test('random completions parse to what the library parses, for both parsers and for patterns of a config', () => {
  const rows = readFileSync(new URL('../../fixtures/parsed-completions.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  const differ = rows.filter((row) => {
    const one = parseJson(row) as ValueMap;
    const args = ['answer_pattern', 'fact_pattern'].flatMap((name): [string, Value][] => {
      const pattern = one.get(name) ?? null;
      return pattern === null ? [] : [[name, pattern]];
    });
    const domain = new Map<string, Value>([
      ['platform_id', 1n],
      ['parser', `${one.get('parser')}_block`],
      ['parser_args', new Map(args)],
    ]);
    const { config } = resolveVerifier(new Map([['domain', domain]]), null);
    const parsed = config && parseCompletion(config.parser, 'p', one.get('completion') as string);
    return dumpJson(parsed && parsedToValue(parsed)) !== dumpJson(one.get('parsed') as Value);
  });
  expect(differ).toEqual([]);
});
