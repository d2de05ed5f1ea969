// Processes of a benchmark: what they say is waited for as long as they live.

import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** The next message; rejects if the child ends instead. */
export function said(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const end = (act: () => void): void => {
      child.off('message', told);
      child.off('exit', gone);
      act();
    };
    const told = (message: unknown): void => end(() => resolve(message));
    const gone = (code: number | null): void =>
      end(() => reject(new Error(`a process of the benchmark ended with ${code}`)));
    child.once('message', told);
    child.once('exit', gone);
    if (child.exitCode !== null) gone(child.exitCode);
  });
}

const TICK_MS = 10;

/** CPU that a process has used, in steps of 10 ms; null where the system does not tell (it is read from /proc). */
export function cpuMs(pid: number | undefined): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    const ms = (Number(fields[11]) + Number(fields[12])) * TICK_MS;
    return Number.isFinite(ms) ? ms : null;
  } catch {
    return null;
  }
}

/** The same of its threads that live, in nanoseconds' steps: for stretches that are short. */
export function cpuUs(pid: number | undefined): number | null {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const ns = threads.map((thread) =>
      Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
    );
    return ns.reduce((sum, one) => sum + one, 0) / 1_000;
  } catch {
    return null;
  }
}

/** The most memory that a process has held at once, shared pages included; null where the system does not tell. */
export function peakBytes(pid: number | undefined): number | null {
  try {
    const kb = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kb === undefined ? null : Number(kb) * 1024;
  } catch {
    return null;
  }
}
