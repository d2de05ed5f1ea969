// OpenRLHF's `query` is prompt and completion decoded as one text, with special tokens, and cut on the left where it
// was too long. What the policy wrote is what follows the prompt: found by the prompt itself, or by the longest end
// of it with which the query begins; and without the tokens that end a turn. Pure, and linear in the text's length.
/** What common tokenizers put at the end of a turn or fill up with. */
export const END_TOKENS = [
    '<|im_end|>',
    '<|endoftext|>',
    '<|end_of_text|>',
    '<|eot_id|>',
    '<|eom_id|>',
    '<|end|>',
    '<|return|>',
    '<|end▁of▁sentence|>',
    '<end_of_turn>',
    '</s>',
    '<eos>',
    '<pad>',
    '[PAD]',
];
/** Tokens that a tokenizer sets before everything, and which the prompt's own text does not have. */
const START_TOKENS = ['<|begin_of_text|>', '<|begin▁of▁sentence|>', '<s>', '<bos>'];
/** A shorter overlap is taken for chance: a prompt that was cut keeps far more. */
const LEAST_OVERLAP = 8;
export function completionOf(query, prompt, endTokens) {
    return withoutEnd(withoutPrompt(query, prompt), endTokens);
}
function withoutPrompt(query, prompt) {
    if (prompt === '')
        return query;
    if (query.startsWith(prompt))
        return query.slice(prompt.length);
    const start = START_TOKENS.find((token) => query.startsWith(token) && !prompt.startsWith(token));
    if (start !== undefined && query.startsWith(prompt, start.length))
        return query.slice(start.length + prompt.length);
    const overlap = longestOverlap(prompt, query);
    return overlap >= LEAST_OVERLAP ? query.slice(overlap) : query;
}
/** The length of the longest end of `prompt` with which `query` begins (Knuth, Morris and Pratt's failure function). */
export function longestOverlap(prompt, query) {
    const most = Math.min(prompt.length, query.length);
    const fail = new Uint32Array(most + 1);
    for (let i = 1, k = 0; i < most; i++) {
        while (k > 0 && query.charCodeAt(i) !== query.charCodeAt(k))
            k = fail[k];
        if (query.charCodeAt(i) === query.charCodeAt(k))
            k++;
        fail[i + 1] = k;
    }
    let k = 0;
    for (let i = prompt.length - most; i < prompt.length; i++) {
        while (k > 0 && (k === most || prompt.charCodeAt(i) !== query.charCodeAt(k)))
            k = fail[k];
        if (k < most && prompt.charCodeAt(i) === query.charCodeAt(k))
            k++;
    }
    return k;
}
function withoutEnd(text, endTokens) {
    let end = text.length;
    for (;;) {
        // Between and after the tokens there may be blanks, which are the template's and not the policy's.
        const trimmed = text.slice(0, end).trimEnd().length;
        const token = endTokens.find((one) => one !== '' && text.endsWith(one, trimmed));
        if (token === undefined)
            return text.slice(0, end);
        end = trimmed - token.length;
    }
}
