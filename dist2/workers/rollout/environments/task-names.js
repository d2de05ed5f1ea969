// What a code task says of itself before any edit: which names its files define, and which files of the check the agent
// was told of. A grade made apart leans on it where the candidate's own word must not decide (docs/grades.md).
const FUNCTION = /^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)/gm;
const NAME = /^(?:(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]*)?=(?!=))/gm;
/** What is withheld travels over the channel between judge and candidate when its time comes. */
const MOST_BYTES = 4 * 1024 * 1024;
/** `statement`, and `initial` by path: what the agent was given. `hidden`: the check's files by normalised path. */
export function taskFacts(statement, initial, hidden) {
    const sources = [...initial].filter(([path]) => path.endsWith('.py')).map(([, text]) => text);
    const found = (pattern) => [
        ...new Set(sources.flatMap((text) => [...text.matchAll(pattern)].map((match) => (match[1] ?? match[2])))),
    ];
    return {
        functions: found(FUNCTION),
        names: found(NAME),
        withheld: withheld([statement, ...initial.keys(), ...initial.values()].join('\n'), hidden),
    };
}
/** Data of the check's that it names itself and the task does not: it may hold the answers. What neither names is read by
 *  the candidate on its own, or by nobody. */
function withheld(told, hidden) {
    const code = [...hidden].filter(([path]) => path.endsWith('.py')).map(([, content]) => content.toString('utf8'));
    const data = [...hidden].filter(([path]) => !path.endsWith('.py'));
    const bytes = data.reduce((sum, [, content]) => sum + content.length, 0);
    if (bytes > MOST_BYTES)
        return [];
    return data.map(([path]) => path).filter((path) => !told.includes(baseOf(path)) && namesOf(path).some(isSaid));
    function isSaid(name) {
        return code.some((text) => text.includes(name));
    }
}
function baseOf(path) {
    return path.slice(path.lastIndexOf('/') + 1);
}
/** By which a check may name a file: itself, without its ending, the ending alone, a folder around it. */
function namesOf(path) {
    const base = baseOf(path);
    const dot = base.lastIndexOf('.');
    const folders = path.split('/').slice(0, -1);
    return [base, ...folders, ...(dot > 0 ? [base.slice(0, dot), base.slice(dot)] : [])].filter((name) => name !== '');
}
