// A completion as the payload to verify: query, facts, relations, and the model's own answer. The two parsers are
// the library's, to the character. Nothing in a completion raises: what they cannot read is null, and earns the floor.

import { parseJson } from '../../shared/json/json.ts';
import { isMap, type Value, type ValueMap } from '../../shared/json/value.ts';
import { formatTemplate } from '../../shared/python/format.ts';
import { FormatFault } from '../../shared/python/format-spec.ts';
import type { ParserConfig } from '../../shared/spec/verifier-config.ts';
import { decisionBlock, reasoningOf } from './blocks.ts';
import { type FactLines, type Overruns, readFacts, readFactsAside } from './regex-parser.ts';

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

/** A decision block above this is unreadable: what reads it would keep everything else waiting. */
const MAX_BLOCK_BYTES = 1024 * 1024;

/** Null where the library's parser gives None or raises, and for a block above the limit. */
export function parseCompletion(
  config: ParserConfig,
  prompt: string | null,
  completion: string,
): ParsedCompletion | null {
  if (config.broken !== null) return null;
  if (config.kind === 'json_block') return jsonBlock(config, prompt, completion);
  const block = regexBlock(completion);
  return block === null ? null : factsPayload(config, prompt, completion, block, readFacts(config, block));
}

/** The same, with patterns of the config's own matched in another thread; and why there is no payload. */
export async function parseCompletionAside(
  config: ParserConfig,
  prompt: string | null,
  completion: string,
  overruns: Overruns,
): Promise<ParsedCompletion | { unreadable: string }> {
  const before = overruns.ms;
  const parsed = await parseAside(config, prompt, completion, overruns);
  if (parsed) return parsed;
  if (overruns.ms > before) return { unreadable: "the parser's pattern runs away on the completion" };
  const block = decisionBlock(completion) ?? (config.kind === 'regex_block' ? completion : '');
  return { unreadable: isTooLarge(block) ? 'the decision block is above 1 MB' : 'the completion does not parse' };
}

async function parseAside(
  config: ParserConfig,
  prompt: string | null,
  completion: string,
  overruns: Overruns,
): Promise<ParsedCompletion | null> {
  if (config.broken !== null || config.kind === 'json_block') return parseCompletion(config, prompt, completion);
  const block = regexBlock(completion);
  if (block === null) return null;
  return factsPayload(config, prompt, completion, block, await readFactsAside(config, block, overruns));
}

function jsonBlock(
  config: Extract<ParserConfig, { kind: 'json_block' }>,
  prompt: string | null,
  completion: string,
): ParsedCompletion | null {
  const block = decisionBlock(completion);
  if (block === null || isTooLarge(block)) return null;
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

function regexBlock(completion: string): string | null {
  const block = decisionBlock(completion) || completion;
  return isTooLarge(block) ? null : block;
}

function isTooLarge(block: string): boolean {
  return block.length > MAX_BLOCK_BYTES || Buffer.byteLength(block) > MAX_BLOCK_BYTES;
}

function factsPayload(
  config: ParserConfig,
  prompt: string | null,
  completion: string,
  block: string,
  read: FactLines | null,
): ParsedCompletion | null {
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
