import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { dumpJson, parseJson } from '../../../src/shared/json/json.ts';
import type { Value, ValueMap } from '../../../src/shared/json/value.ts';
import { translatePattern } from '../../../src/shared/python/regex.ts';
import { ANSWER_PATTERN, FACT_PATTERN, resolveVerifier } from '../../../src/shared/spec/verifier-config.ts';
import { answerLine, factLines } from '../../../src/workers/verify/fact-lines.ts';
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

// Pieces put together by a fixed sequence of numbers: every run tries the same 20,000 texts.
test('the scan for the usual patterns finds what the patterns find', () => {
  const pieces =
    'fact|FaCt |fact a| fact a: 1|answer|an\u017fwer|AnSwer:|:|:| |\n|\n|\n\n|\r|\u2028|\x1c|\x85|\ufeff|\t|x|a.b-c|é|中|1.5|q: |\ud83d\ude00|\ud83d|\ude00|\u0130|fact\n'.split(
      '|',
    );
  const fact = translatePattern(FACT_PATTERN).regexp;
  const answer = translatePattern(ANSWER_PATTERN).regexp;
  let seed = 1;
  const next = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let i = 0; i < 20_000; i++) {
    const text = Array.from({ length: 1 + next(14) }, () => pieces[next(pieces.length)]).join('');
    answer.lastIndex = 0;
    const found = {
      facts: [...text.matchAll(fact)].map((match) => [match[1], match[2]]),
      answer: answer.exec(text)?.[1] ?? null,
    };
    expect({ facts: factLines(text), answer: answerLine(text) }, JSON.stringify(text)).toEqual(found);
  }
});
