// A completion as the payload to verify: query, facts, relations, and the model's own answer. The two parsers are
// the library's, to the character. Nothing in a completion raises: what they cannot read is null, and earns the floor.
import { parseJson } from '../../shared/json/json.js';
import { isMap } from '../../shared/json/value.js';
import { formatTemplate } from '../../shared/python/format.js';
import { FormatFault } from '../../shared/python/format-spec.js';
import { decisionBlock, reasoningOf } from './blocks.js';
import { readFacts, readFactsAside } from './regex-parser.js';
/** A decision block above this is unreadable: what reads it would keep everything else waiting. */
const MAX_BLOCK_BYTES = 1024 * 1024;
/** Null where the library's parser gives None or raises, and for a block above the limit. */
export function parseCompletion(config, prompt, completion) {
    if (config.broken !== null)
        return null;
    if (config.kind === 'json_block')
        return jsonBlock(config, prompt, completion);
    const block = regexBlock(completion);
    return block === null ? null : factsPayload(config, prompt, completion, block, readFacts(config, block));
}
/** The same, with patterns of the config's own matched in another thread; and why there is no payload. */
export async function parseCompletionAside(config, prompt, completion, overruns) {
    const before = overruns.ms;
    const parsed = await parseAside(config, prompt, completion, overruns);
    if (parsed)
        return parsed;
    if (overruns.ms > before)
        return { unreadable: "the parser's pattern runs away on the completion" };
    const block = decisionBlock(completion) ?? (config.kind === 'regex_block' ? completion : '');
    return { unreadable: isTooLarge(block) ? 'the decision block is above 1 MB' : 'the completion does not parse' };
}
async function parseAside(config, prompt, completion, overruns) {
    if (config.broken !== null || config.kind === 'json_block')
        return parseCompletion(config, prompt, completion);
    const block = regexBlock(completion);
    if (block === null)
        return null;
    return factsPayload(config, prompt, completion, block, await readFactsAside(config, block, overruns));
}
function jsonBlock(config, prompt, completion) {
    const block = decisionBlock(completion);
    if (block === null || isTooLarge(block))
        return null;
    let data;
    try {
        data = parseJson(block);
    }
    catch {
        return null;
    }
    if (!isMap(data))
        return null;
    const facts = config.factsKey === null ? null : data.get(config.factsKey);
    if (!isMap(facts))
        return null;
    const relations = config.relationsKey ? data.get(config.relationsKey) : null;
    const query = queryOf(config.queryTemplate, new Map(data).set('facts', facts));
    if (query === null)
        return null;
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
function regexBlock(completion) {
    const block = decisionBlock(completion) || completion;
    return isTooLarge(block) ? null : block;
}
function isTooLarge(block) {
    return block.length > MAX_BLOCK_BYTES || Buffer.byteLength(block) > MAX_BLOCK_BYTES;
}
function factsPayload(config, prompt, completion, block, read) {
    if (read === null)
        return null;
    const query = queryOf(config.queryTemplate, new Map([['facts', read.facts]]));
    if (query === null)
        return null;
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
function queryOf(template, values) {
    try {
        return formatTemplate(template, values);
    }
    catch (error) {
        if (!(error instanceof FormatFault))
            throw error;
        return error.kind === 'value' ? template : null;
    }
}
/** The payload as JSON, in the library's names and order. */
export function parsedToValue(parsed) {
    return new Map([
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
