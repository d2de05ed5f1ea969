// What a script of the fleet answers: calls to make, a code for each key that was asked about, events, and names.
const NOTHING = Buffer.alloc(0);
/** Codes that come with a value. */
const VALUED = 'vuxmoh';
export function readReply(answer) {
    const [wake, events, calls, codes, values, names, waiting, abandoned = []] = answer;
    let at = 0;
    return {
        wakeMs: Number(wake.toString()),
        events: events.map(([name, detail]) => [name.toString(), detail.toString()]),
        calls: calls.map(readCall),
        own: [...codes.toString()].map((code) => ({
            code,
            value: VALUED.includes(code) ? values[at++] : NOTHING,
        })),
        names: names.map(String),
        abandoned: abandoned.map(String),
        waiting,
    };
}
function readCall([token, generation, kind, items, queries]) {
    const words = items.toString().split(' ');
    return {
        token: token.toString(),
        generation: Number(generation.toString()),
        single: kind.toString().startsWith('1'),
        ahead: kind.toString().endsWith('a'),
        items: Array.from({ length: words.length / 3 }, (_, i) => ({
            key: words[3 * i],
            sealed: queries[i] ?? NOTHING,
            tries: Number(words[3 * i + 1]),
            waitedMs: Number(words[3 * i + 2]),
        })),
    };
}
