// `farm show FILE`: what a trajectory file says, and whether it agrees with itself; no environment is needed.

import { readFileSync } from 'node:fs';
import { EXIT, inputError, messageOf } from '../../shared/errors.ts';
import { fingerprint, integrityMismatches, parseTrajectory, type Trajectory } from '../../shared/trajectory.ts';

export async function show(args: { file: string }): Promise<number> {
  const trajectory = readTrajectory(args.file);
  const problems = integrityMismatches(trajectory);
  const total = trajectory.totalReward;
  const rows = [
    ['env', trajectory.envId],
    ['seed', String(trajectory.seed)],
    ['steps', String(trajectory.transitions.length)],
    ['total reward', `${Number(total) >= 0 ? '+' : ''}${Number(total).toFixed(3)}`],
    ['fingerprint', fingerprint(trajectory)],
    ['integrity', problems.length === 0 ? 'ok' : 'MISMATCH'],
  ] as const;
  for (const [name, value] of rows) process.stdout.write(`${name.padEnd(12)}: ${value}\n`);
  for (const problem of problems) process.stdout.write(`  - ${problem}\n`);
  return problems.length === 0 ? EXIT.ok : EXIT.unsound;
}

/** Throws FarmError (exit 2) for a file that cannot be read or is no trajectory. */
export function readTrajectory(file: string): Trajectory {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw inputError('file_unreadable', `${file} cannot be read: ${messageOf(error)}`);
  }
  return parseTrajectory(bytes, file);
}
