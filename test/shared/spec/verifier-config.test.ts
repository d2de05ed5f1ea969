import { expect, test } from 'vitest';
import { dumpJson, parseJson } from '../../../src/shared/json/json.ts';
import { isMap, type Value, type ValueMap } from '../../../src/shared/json/value.ts';
import { resolveVerifier, VERIFIER_SECTIONS } from '../../../src/shared/spec/verifier-config.ts';
import { readYaml, YamlError } from '../../../src/shared/spec/yaml.ts';
import { readVectors, type VectorCase } from '../../support/vector-file.ts';

function resolve(text: string, baseUrl: string | null = null) {
  return resolveVerifier(parseJson(text) as ValueMap, baseUrl);
}
const paths = (text: string): string[] => resolve(text).problems.map((problem) => problem.path);

// What the reference gives for the same mapping; a date in a trainer's section stays text here.
function sameConfig(one: VectorCase, accepted: ValueMap, root: ValueMap): boolean {
  const { config } = resolveVerifier(root, null);
  if (!config) return /NaN|Infinity|"-?(inf|nan)"|\.(inf|NaN)/i.test(dumpJson(one.in));
  const domain = accepted.get('domain') as ValueMap;
  const parser = domain.get('parser') as ValueMap;
  const shaper = accepted.get('shaper') as ValueMap;
  const verifier = accepted.get('verifier') as ValueMap;
  const weights = shaper.get('weights') as ValueMap;
  const given = config.parser;
  const own: [unknown, Value | undefined][] = [
    [config.platformId, domain.get('platform_id')],
    [config.baseUrl, (domain.get('base_url') as string).replace(/\/+$/, '')],
    [config.floor, verifier.get('floor')],
    [BigInt(config.batchSize), verifier.get('batch_size')],
    [BigInt(config.maxConcurrency), verifier.get('max_concurrency')],
    [config.cache, verifier.get('cache')],
    [config.clip.join(), (shaper.get('clip') as number[]).join()],
    [JSON.stringify(config.weights), JSON.stringify(Object.fromEntries(weights))],
    [given.kind === 'json_block' ? 'JSONBlockParser' : 'RegexBlockParser', parser.get('class')],
  ];
  if (given.broken === null) own.push([given.queryTemplate, parser.get('query_template')]);
  if (given.kind === 'json_block') own.push([given.answerKey, parser.get('answer_key')]);
  else own.push([given.factPattern, parser.get('fact_pattern')]);
  return own.every(([ours, theirs]) => ours === theirs);
}

test('every reference config is accepted with the same meaning, or refused where the library refuses it', () => {
  const differ = readVectors('at-config').filter((one) => {
    if (one.in.has('path')) return false;
    let root = one.in.get('mapping') ?? null;
    const text = one.in.get('yaml');
    if (typeof text === 'string') {
      try {
        root = readYaml(text, 'config.yaml').value;
      } catch (error) {
        if (!(error instanceof YamlError)) throw error;
        return !one.out.has('raises') && !error.message.includes('twice');
      }
    }
    const accepted = one.out.get('accepted');
    if (isMap(accepted)) return !isMap(root) || !sameConfig(one, accepted, root);
    if (!isMap(root)) return false;
    const unknown = [...root.keys()].some((key) => !(VERIFIER_SECTIONS as readonly string[]).includes(key));
    return !unknown && resolveVerifier(root, null).config !== null;
  });
  expect(differ.map((one) => one.id)).toEqual([]);
});

test('every problem is named at once, by its dotted path', () => {
  expect(
    paths(
      '{"domain": {"platform_id": "x", "colour": 1, "parser": "yaml"}, "reward": {"clip": [2, 1], "weights": {"certifed": 1}}, "verifier": {"floor": NaN}, "training": {}}',
    ),
  ).toEqual([
    'training.framework',
    'training.model',
    'reward.clip',
    'domain.colour',
    'domain.platform_id',
    'domain.parser',
    'reward.weights.certifed',
    'verifier.floor',
  ]);
});

test('a key in the file is refused by the name of its variable, and is not repeated', () => {
  const { config, problems } = resolve('{"domain": {"platform_id": 1, "api_key": "at_secret_value"}}');
  expect(config).toBeNull();
  expect(problems).toHaveLength(1);
  expect(problems[0]?.message).toContain('AMBERTRACE_API_KEY');
  expect(JSON.stringify(problems)).not.toContain('at_secret_value');
});

test('the host that does not serve the API is refused, whatever its scheme, port or case', () => {
  for (const url of ['https://api.ambertrace.ai', 'API.ambertrace.ai', 'http://api.ambertrace.ai:8443/x'])
    expect(paths(`{"domain": {"platform_id": 1, "base_url": "${url}"}}`)).toEqual(['domain.base_url']);
});

test('the environment stands in for a base URL that the file does not have', () => {
  expect(resolve('{"domain": {"platform_id": 1}}', 'http://127.0.0.1:9/').config?.baseUrl).toBe('http://127.0.0.1:9');
  expect(resolve('{"domain": {"platform_id": 1, "base_url": "http://a"}}', 'http://b').config?.baseUrl).toBe(
    'http://a',
  );
});

test('a pattern that cannot be used is a problem of the config', () => {
  expect(
    paths('{"domain": {"platform_id": 1, "parser": "regex_block", "parser_args": {"fact_pattern": "(a"}}}'),
  ).toEqual(['domain.parser_args.fact_pattern']);
});

test('a document without a domain has no verifier', () => {
  expect(resolve('{"name": "x"}')).toEqual({ config: null, problems: [] });
});

test('a rate of requests is ours: a number of requests a second, or none', () => {
  const rate = (value: string) =>
    resolve(`{"domain": {"platform_id": 1}, "verifier": {"requests_per_second": ${value}}}`);
  expect(['5', '0.5', 'null'].map((value) => rate(value).config?.requestsPerSecond)).toEqual([5, 0.5, null]);
  expect(resolve('{"domain": {"platform_id": 1}}').config?.requestsPerSecond).toBe(null);
  for (const value of ['0', '-1', '"5"', 'true', '1e9', 'NaN', '[5]'])
    expect([value, rate(value).problems.map((problem) => problem.path)]).toEqual([
      value,
      ['verifier.requests_per_second'],
    ]);
});
