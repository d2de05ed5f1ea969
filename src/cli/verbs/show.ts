// `farm show FILE`: what a trajectory file says, and whether it agrees with itself; no environment is needed.

import { EXIT } from '../../shared/errors.ts';
import type { Value } from '../../shared/json/value.ts';
import { readSpec } from '../../shared/python/format-spec.ts';
import { formatFloat, formatInteger } from '../../shared/python/number-format.ts';
import { str } from '../../shared/python/text.ts';
import { fingerprint, integrityMismatches, parseTrajectory, type Trajectory } from '../../shared/trajectory.ts';
import { readNamedFile } from '../named-file.ts';

export async function show(args: { file: string }): Promise<number> {
  const trajectory = readTrajectory(args.file);
  for (const line of shownLines(trajectory)) process.stdout.write(`${line}\n`);
  return integrityMismatches(trajectory).length === 0 ? EXIT.ok : EXIT.unsound;
}

/** What is printed: the lines of `crucible show`, numbers as Python writes them. */
export function shownLines(trajectory: Trajectory): string[] {
  const problems = integrityMismatches(trajectory);
  const rows = [
    ['env', str(trajectory.envId)],
    ['seed', str(trajectory.seed)],
    ['steps', String(trajectory.transitions.length)],
    ['total reward', signed(trajectory.totalReward)],
    ['fingerprint', fingerprint(trajectory)],
    ['integrity', problems.length === 0 ? 'ok' : 'MISMATCH'],
  ] as const;
  return [
    ...rows.map(([name, value]) => `${name.padEnd(12)}: ${value}`),
    ...problems.map((problem) => `  - ${problem}`),
  ];
}

/** `f"{total:+.3f}"`: half to even on the exact value, and no exponent however large, which `toFixed` is not. */
function signed(total: Value): string {
  const spec = readSpec('+.3f', true);
  return typeof total === 'number' ? formatFloat(total, spec) : formatInteger(BigInt(total as bigint | boolean), spec);
}

/** Throws FarmError (exit 2) for a file that cannot be read or is no trajectory. */
export function readTrajectory(file: string): Trajectory {
  return parseTrajectory(readNamedFile(file), file);
}
