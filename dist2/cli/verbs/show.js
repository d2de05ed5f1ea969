// `farm show FILE`: what a trajectory file says, and whether it agrees with itself; no environment is needed.
import { readFileSync } from 'node:fs';
import { EXIT, inputError, messageOf } from '../../shared/errors.js';
import { readSpec } from '../../shared/python/format-spec.js';
import { formatFloat, formatInteger } from '../../shared/python/number-format.js';
import { str } from '../../shared/python/text.js';
import { fingerprint, integrityMismatches, parseTrajectory } from '../../shared/trajectory.js';
export async function show(args) {
    const trajectory = readTrajectory(args.file);
    for (const line of shownLines(trajectory))
        process.stdout.write(`${line}\n`);
    return integrityMismatches(trajectory).length === 0 ? EXIT.ok : EXIT.unsound;
}
/** What is printed: the lines of `crucible show`, numbers as Python writes them. */
export function shownLines(trajectory) {
    const problems = integrityMismatches(trajectory);
    const rows = [
        ['env', str(trajectory.envId)],
        ['seed', str(trajectory.seed)],
        ['steps', String(trajectory.transitions.length)],
        ['total reward', signed(trajectory.totalReward)],
        ['fingerprint', fingerprint(trajectory)],
        ['integrity', problems.length === 0 ? 'ok' : 'MISMATCH'],
    ];
    return [
        ...rows.map(([name, value]) => `${name.padEnd(12)}: ${value}`),
        ...problems.map((problem) => `  - ${problem}`),
    ];
}
/** `f"{total:+.3f}"`: half to even on the exact value, and no exponent however large, which `toFixed` is not. */
function signed(total) {
    const spec = readSpec('+.3f', true);
    return typeof total === 'number' ? formatFloat(total, spec) : formatInteger(BigInt(total), spec);
}
/** Throws FarmError (exit 2) for a file that cannot be read or is no trajectory. */
export function readTrajectory(file) {
    let bytes;
    try {
        bytes = readFileSync(file);
    }
    catch (error) {
        throw inputError('file_unreadable', `${file} cannot be read: ${messageOf(error)}`);
    }
    return parseTrajectory(bytes, file);
}
