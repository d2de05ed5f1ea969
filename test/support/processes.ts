// What runs on this machine, from /proc: a test sees with its own eyes that nothing of its farm is left.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface SeenProcess {
  pid: number;
  command: string;
}

/** Processes whose environment names this data folder, or that work in it (redis-server wipes its environment). */
export function processesOf(dataFolder: string): SeenProcess[] {
  const mark = `FARM_DATA=${dataFolder}`;
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      const ours =
        readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark) ||
        `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${dataFolder}/`);
      const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
      // A zombie has no command line and runs nothing any more.
      return ours && command !== '' ? [{ pid, command }] : [];
    } catch {
      return [];
    }
  });
}

export function killAll(processes: readonly SeenProcess[], signal: NodeJS.Signals = 'SIGKILL'): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, signal);
    } catch {
      // gone by itself
    }
  }
}
