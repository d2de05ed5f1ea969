// A program that a command runs and waits for. Whoever ends the command ends it too, with whatever it has started: a signal
// that is sent to the command alone reaches none of them by itself.

import { type SpawnOptions, spawn } from 'node:child_process';
import { FarmError } from '../shared/errors.ts';
import { descendantsOf } from '../shared/process-tree.ts';
import { Interrupts } from './interrupts.ts';

const STOP_MS = 4_000;
/** Half an installation is worse than one that nobody waits for. */
const SPARED = new Set(['apt-get']);

/** Its exit code; 127 where it cannot be started. Throws FarmError (exit 130, 143) where the command is to end. */
export async function runProgram(program: string, args: readonly string[], options: SpawnOptions): Promise<number> {
  const child = spawn(program, args, options);
  const interrupts = new Interrupts();
  const end = (signal: NodeJS.Signals): void => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    for (const pid of [child.pid, ...descendantsOf(child.pid, (name) => SPARED.has(name))]) kill(pid, signal);
  };
  let killer: NodeJS.Timeout | undefined;
  let interrupted = false;
  interrupts.onFirst(() => {
    interrupted = true;
    end('SIGTERM');
    killer = setTimeout(() => end('SIGKILL'), STOP_MS);
  });
  interrupts.onForce(() => end('SIGKILL'));
  try {
    const exit = await new Promise<number>((resolve) => {
      child.once('error', () => resolve(127));
      child.once('exit', (code) => resolve(code ?? 1));
    });
    if (interrupted) throw new FarmError('interrupted', 'interrupted', { exit: interrupts.exitCode });
    return exit;
  } finally {
    clearTimeout(killer);
    interrupts.close();
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended, or is root's: then sudo passes on what a terminal tells it.
  }
}
