// What a process of this machine has started and what still lives of it, read from /proc; nothing where there is none.

import { readFileSync } from 'node:fs';

export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Parents before their children; without those that `spared` names, and what they have started. */
export function descendantsOf(pid: number, spared: (program: string) => boolean = () => false): number[] {
  return childrenOf(pid).flatMap((child) => (spared(programOf(child)) ? [] : [child, ...descendantsOf(child, spared)]));
}

function programOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
