// A config, read by the product's own reader from a file with the same text (or, where the case gives the parsed
// mapping, from its JSON): the same meaning, or refused where the library refuses it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readConfig } from '../../src/shared/config.ts';
import { dumpJson } from '../../src/shared/json/json.ts';
import { isMap, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { readSpec, type SpecResult } from '../../src/shared/spec/reader.ts';
import type { VerifierConfig } from '../../src/shared/spec/verifier-config.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, judge, type Runner, type Verdict } from './verdict.ts';

export function configRunner(): Runner {
  const folder = mkdtempSync(path.join(tmpdir(), 'rollout-farm-vectors-'));
  const config = { ...readConfig(), ambertraceBaseUrl: null };
  return {
    async run(one) {
      const file = path.join(folder, (one.in.get('path') as string | undefined) ?? 'config.yaml');
      const yaml = one.in.get('yaml');
      if (!one.in.has('path'))
        writeFileSync(file, typeof yaml === 'string' ? yaml : dumpJson(one.in.get('mapping') ?? null));
      return compare(one, await readSpec(file, config));
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

function compare(one: VectorCase, read: SpecResult): Verdict {
  const accepted = one.out.get('accepted');
  if (!read.ok) {
    const why = read.problems.map((problem) => `${problem.path}: ${problem.message}`).join('; ');
    return judge(one, !isMap(accepted), `refused: ${why}`, [
      'finite-numbers',
      'clip-in-order',
      'key-given-twice',
      'wrong-host',
    ]);
  }
  if (!isMap(accepted)) return differ('accepted, and the library refuses it');
  if (read.kind !== 'verifier') return differ('read as a run spec');
  const wrong = differences(read.verifier, accepted);
  return judge(one, wrong.length === 0, `another ${wrong.join(', ')}`);
}

function differences(config: VerifierConfig, accepted: ValueMap): string[] {
  const part = (name: string, of: ValueMap = accepted): ValueMap => of.get(name) as ValueMap;
  const [domain, shaper, verifier] = [part('domain'), part('shaper'), part('verifier')];
  const [parser, weights] = [part('parser', domain), part('weights', shaper)];
  const ours = config.parser;
  const pairs: [string, Value, Value | undefined][] = [
    ['platform_id', config.platformId, domain.get('platform_id')],
    ['base_url', config.baseUrl, (domain.get('base_url') as string).replace(/\/+$/, '')],
    ['floor', config.floor, verifier.get('floor')],
    ['batch_size', config.batchSize, Number(verifier.get('batch_size'))],
    ['max_concurrency', config.maxConcurrency, Number(verifier.get('max_concurrency'))],
    ['cache', config.cache, verifier.get('cache')],
    ['clip', [...config.clip], shaper.get('clip')],
    ['weights', new Map(Object.entries(config.weights)), weights],
    ['parser', ours.kind === 'json_block' ? 'JSONBlockParser' : 'RegexBlockParser', parser.get('class')],
  ];
  // Arguments of another type are kept as a fault of the parser: with them the library's parser finds nothing, or raises.
  if (ours.broken === null) {
    pairs.push(['query_template', ours.queryTemplate, parser.get('query_template')]);
    const keys: [string, Value][] =
      ours.kind === 'json_block'
        ? [
            ['answer_key', ours.answerKey],
            ['facts_key', ours.factsKey],
            ['relations_key', ours.relationsKey],
          ]
        : [
            ['answer_pattern', ours.answerPattern],
            ['fact_pattern', ours.factPattern],
          ];
    for (const [name, value] of keys) if (value !== null) pairs.push([name, value, parser.get(name)]);
  }
  return pairs.filter(([, mine, theirs]) => !sameAsReference(mine, theirs ?? null)).map(([name]) => name);
}
