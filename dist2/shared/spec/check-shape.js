// What the command of a code task's check is, read off the task alone: which grade it can have, and which file or module
// the harness then runs. Never from what the candidate does: two members of a group are judged the same way.
import { isMap } from '../json/value.js';
import { safePath } from '../safe-path.js';
const PYTHON = /^python(3(\.\d+)?)?$/;
/** Where untrusted code could put an interpreter of its own. */
const WRITABLE = /^\/(work|judge|tmp|dev|proc|sys)(\/|$)/;
/** `check` has a sound command and files. */
export function checkShape(check) {
    const [interpreter, first, ...rest] = check.get('command');
    if (interpreter === undefined || !isPython(interpreter))
        return exit('its program is not python3');
    if (first === undefined)
        return exit('there is no file to run');
    if (first === '-m') {
        const [module, ...args] = rest;
        if (module === undefined || module.startsWith('-'))
            return exit('there is no module to run');
        return {
            level: 'in-process',
            interpreter,
            file: null,
            module,
            argv: [module, ...args],
            because: 'it runs a module',
        };
    }
    if (first.startsWith('-'))
        return exit(`the interpreter has the option ${first}`);
    const place = safePath(first.startsWith('/work/') ? first.slice('/work/'.length) : first);
    if (!place.ok)
        return exit(`${first} is no file of the task`);
    const argv = [first, ...rest];
    const hidden = isHidden(place.path, check.get('files') ?? null);
    const because = hidden ? '' : `${place.path} is not one of check.files`;
    return { level: hidden ? 'apart' : 'in-process', interpreter, file: place.path, module: null, argv, because };
}
function exit(because) {
    return { level: 'exit', because };
}
function isPython(program) {
    if (!PYTHON.test(program.slice(program.lastIndexOf('/') + 1)))
        return false;
    return !program.includes('/') || (program.startsWith('/') && !WRITABLE.test(program) && !program.includes('/../'));
}
function isHidden(path, files) {
    if (!isMap(files))
        return false;
    return [...files.keys()].some((name) => {
        const place = safePath(name);
        return place.ok && place.path === path;
    });
}
