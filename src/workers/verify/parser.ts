// A completion as the payload to verify: query, facts, relations, and the model's own answer. The two parsers are
// the library's, to the character. Nothing in a completion raises: what they cannot read is null, and earns the floor.

import { parseJson } from '../../shared/json/json.ts';
import { isMap, type Value, type ValueMap } from '../../shared/json/value.ts';
import { formatTemplate } from '../../shared/python/format.ts';
import { FormatFault } from '../../shared/python/format-spec.ts';
import type { ParserConfig } from '../../shared/spec/verifier-config.ts';
import { decisionBlock, reasoningOf } from './blocks.ts';
import { readFacts } from './regex-parser.ts';

export interface ParsedCompletion {
  query: string;
  facts: ValueMap;
  proposedAnswer: Value;
  relations: ValueMap | null;
  /** A fan-in of other platforms' predictions; no parser of ours makes one. */
  predictions: ValueMap | null;
  rawBlock: string | null;
  prompt: string | null;
  reasoning: string | null;
}

/** Null where the library's parser gives None or raises. */
export function parseCompletion(
  config: ParserConfig,
  prompt: string | null,
  completion: string,
): ParsedCompletion | null {
  if (config.broken !== null) return null;
  return config.kind === 'json_block' ? jsonBlock(config, prompt, completion) : regexBlock(config, prompt, completion);
}

function jsonBlock(
  config: Extract<ParserConfig, { kind: 'json_block' }>,
  prompt: string | null,
  completion: string,
): ParsedCompletion | null {
  const block = decisionBlock(completion);
  if (block === null) return null;
  let data: Value;
  try {
    data = parseJson(block);
  } catch {
    return null;
  }
  if (!isMap(data)) return null;
  const facts = config.factsKey === null ? null : data.get(config.factsKey);
  if (!isMap(facts)) return null;
  const relations = config.relationsKey ? data.get(config.relationsKey) : null;
  const query = queryOf(config.queryTemplate, new Map(data).set('facts', facts));
  if (query === null) return null;
  return {
    query,
    facts,
    proposedAnswer: (config.answerKey === null ? null : data.get(config.answerKey)) ?? null,
    relations: isMap(relations) ? relations : null,
    predictions: null,
    rawBlock: block,
    prompt,
    reasoning: reasoningOf(completion),
  };
}

function regexBlock(
  config: Extract<ParserConfig, { kind: 'regex_block' }>,
  prompt: string | null,
  completion: string,
): ParsedCompletion | null {
  const block = decisionBlock(completion) || completion;
  const read = readFacts(config, block);
  if (read === null) return null;
  const query = queryOf(config.queryTemplate, new Map([['facts', read.facts]]));
  if (query === null) return null;
  return {
    query,
    facts: read.facts,
    proposedAnswer: read.answer,
    relations: null,
    predictions: null,
    rawBlock: block,
    prompt,
    reasoning: reasoningOf(completion),
  };
}

/** The filled template; the raw one where a name is missing or the template is odd; null where Python's exception leaves the parser. */
function queryOf(template: string, values: ValueMap): string | null {
  try {
    return formatTemplate(template, values);
  } catch (error) {
    if (!(error instanceof FormatFault)) throw error;
    return error.kind === 'value' ? template : null;
  }
}

/** The payload as JSON, in the library's names and order. */
export function parsedToValue(parsed: ParsedCompletion): ValueMap {
  return new Map<string, Value>([
    ['query', parsed.query],
    ['facts', parsed.facts],
    ['proposed_answer', parsed.proposedAnswer],
    ['relations', parsed.relations],
    ['predictions', parsed.predictions],
    ['raw_block', parsed.rawBlock],
    ['prompt', parsed.prompt],
    ['reasoning', parsed.reasoning],
  ]);
}
