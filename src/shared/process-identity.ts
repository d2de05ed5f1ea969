// Who a process is: host, boot, pid and start time. A pid alone is used again; with the rest, a dead owner of a
// lease is known to be dead at once on its own machine, instead of after the lease.

import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { sha256 } from './claim.ts';

// Containers that share their host's name (its network) have pids of their own: another's would look dead here.
const HOST = sha256(`${hostname()} ${bootId()} ${pidSpace()}`).slice(0, 12);

export function processIdentity(pid: number = process.pid): string {
  return `${HOST}.${pid}.${startTime(pid) ?? 0}`;
}

/** True only if the process is on this machine and certainly there. */
export function isKnownAlive(identity: string): boolean {
  const [host, pid, started] = identity.split('.');
  return host === HOST && startTime(Number(pid)) === Number(started);
}

/** True only if the process was on this machine and is certainly gone. */
export function isKnownDead(identity: string): boolean {
  const [host, pid, started] = identity.split('.');
  return host === HOST && startTime(Number(pid)) !== Number(started);
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

function pidSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** Clock ticks after boot at which the process started (proc(5), stat field 22); null if there is none. */
function startTime(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie runs nothing any more.
    return fields[0] === 'Z' ? null : Number(fields[19]);
  } catch {
    return null;
  }
}
