// A grade as the runner and the harness speak of it: what the nursery is told, what the judge's last line says, and which
// of the two places each file of a check lies in.
import { z } from 'zod';
import { commandEnvironment } from './launch.js';
export const PLACES = ['work', 'judge', 'farm'];
/** Of the judge's result pipe; the runner keeps no more. */
const RESULT_BYTES = 64 * 1024;
const outcomeSchema = z.object({
    completed: z.boolean(),
    exit: z.int(),
    token: z.string(),
    why: z.string().nullish(),
});
/** Apart, the judge has a copy of everything as data, and the candidate none of the check's Python. */
export function placedFiles(check) {
    const placed = [];
    const lay = (place, path, content, hidden) => placed.push({ place, path, content, hidden });
    const shown = shownFiles(check);
    for (const [path, content] of shown)
        lay('work', path, content, false);
    const withheld = (path) => path.endsWith('.py') || check.task.withheld.includes(path);
    for (const [path, content] of check.hidden)
        if (check.kind !== 'apart' || !withheld(path))
            lay('work', path, content, true);
    if (check.kind !== 'apart')
        return placed;
    for (const [path, content] of [...shown, ...check.hidden])
        lay('judge', path, content, check.hidden.has(path));
    return placed;
}
/** What a program that judges in the candidate's process reads by itself, whoever put it there. */
const START_UP = /(^|\/)(conftest\.py|\.?pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|(site|user)customize\.py|[^/]*\.pth|__pycache__\/.*)$/;
/** The agent's state of the files without what would take part in judging. */
export function shownFiles(check) {
    const own = new Set(check.own);
    const files = clearOf(check.files, [...check.hidden.keys()], own);
    if (check.kind === 'apart')
        return files;
    const module = check.module?.split('.')[0];
    const judges = (path) => START_UP.test(path) || path === `${module}.py` || path.startsWith(`${module}/`);
    return new Map([...files].filter(([path]) => own.has(path) || !judges(path)));
}
/** Hidden files win: what stands where they must lie, or their folders, gives way, and so does what is not the task's
 *  own and would be imported in the place of one of them. */
export function clearOf(files, hidden, own) {
    const inTheWay = (path) => hidden.some((one) => one === path || one.startsWith(`${path}/`) || path.startsWith(`${one}/`));
    const modules = hidden.flatMap((path) => (path.endsWith('.py') ? [path.slice(0, -'.py'.length)] : []));
    const shadows = (path) => !own.has(path) &&
        modules.some((one) => path.startsWith(`${one}/`) || (path.startsWith(`${one}.`) && path.endsWith('.so')));
    return new Map([...files].filter(([path]) => !inTheWay(path) && !shadows(path)));
}
/** The command that stands for this check. */
export function commandOf(check) {
    return {
        argv: [check.interpreter, ...(check.module === null ? [] : ['-m']), ...check.argv],
        timeoutMs: check.timeoutMs,
        outputBytes: check.outputBytes,
        ...(check.signal === undefined ? {} : { signal: check.signal }),
    };
}
/** The message that the runner hands to the nursery unread. */
export function taskFor(check, users, path, token) {
    const user = (id) => ({ uid: id, gid: id });
    return Buffer.from(JSON.stringify({
        mode: check.kind,
        check: check.file,
        module: check.module,
        argv: check.argv,
        interpreter: check.interpreter,
        hidden: [...check.hidden.keys()],
        own: check.own,
        ...check.task,
        files: [...new Set([...check.files.keys(), ...check.hidden.keys()])],
        judge: user(users.judge),
        candidate: user(users.candidate),
        env: commandEnvironment(commandOf(check), '/work', path),
        token,
    }));
}
/** A grade passes only if the judge ended by itself with 0 and said, as its last word, that the check was completed. */
export function gradeOf(check, end, said, token, candidateSignal) {
    const outcome = said.length < RESULT_BYTES ? outcomeIn(said, token) : null;
    const passed = end.cause === 'exit' && end.exitCode === 0 && outcome?.completed === true && outcome.exit === 0;
    const why = passed ? null : (outcome?.why ?? (outcome === null ? 'the check did not come to its end' : null));
    return { ...end, status: 'graded', level: check.kind, passed, why, candidateSignal };
}
function outcomeIn(said, token) {
    try {
        const outcome = outcomeSchema.parse(JSON.parse(said.toString('utf8')));
        return outcome.token === token ? outcome : null;
    }
    catch {
        return null;
    }
}
