// How many rollout workers would bring what remains to its end in time: what remains, times what a member takes of a worker,
// by the time there is. What a member takes is measured over the last minutes, with the workers that were there then: the mean
// rate of a run would still speak of one worker when there have been four for a while. Never the queue's depth: that
// stands at the window however much remains.

import type { RunStatus } from '../shared/ledger/run-status.ts';
import type { EngineUse } from '../shared/permits/engines.ts';
import type { Present } from '../shared/presence.ts';
import { SHARED_REALM } from '../shared/realm.ts';

/** What remains should be done within this. */
const TARGET_S = 600;
const WINDOW_MS = 180_000;
/** Below it a single slow member would speak for all. */
const LEAST_MS = 10_000;

export interface Seen {
  runs: readonly RunStatus[];
  workers: readonly Present[];
  engines: readonly EngineUse[];
}

interface Sample {
  atMs: number;
  workers: number;
  accepted: Map<string, number>;
}

export class ServiceTime {
  private samples: Sample[] = [];

  /** To be told of every look, in the order of time. */
  note(seen: Seen, atMs: number): void {
    const accepted = new Map(seen.runs.map((run) => [run.run, run.members.accepted]));
    this.samples.push({ atMs, workers: rolloutWorkers(seen), accepted });
    this.samples = this.samples.filter((sample) => atMs - sample.atMs <= WINDOW_MS);
  }

  /** Seconds of one worker that a member took; null where too little has been seen. */
  get workerSeconds(): number | null {
    let seconds = 0;
    let members = 0;
    for (const [i, now] of this.samples.entries()) {
      const before = this.samples[i - 1];
      if (before === undefined) continue;
      seconds += (before.workers * (now.atMs - before.atMs)) / 1000;
      for (const [run, accepted] of now.accepted)
        members += Math.max(0, accepted - (before.accepted.get(run) ?? accepted));
    }
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    const spanMs = first && last ? last.atMs - first.atMs : 0;
    return spanMs < LEAST_MS || members === 0 || seconds === 0 ? null : seconds / members;
  }
}

export function wantedWorkers(seen: Seen, measured: number | null = null): number {
  const unfinished = (state: RunStatus['state']): RunStatus[] =>
    seen.runs.filter((run) => run.state === state && run.members.planned > run.members.accepted);
  const open = [...unfinished('running'), ...unfinished('draining')];
  const remaining = open.reduce((sum, run) => sum + run.members.planned - run.members.accepted, 0);
  // A run that rests tries again from time to time, and somebody has to be there for it.
  if (remaining === 0) return unfinished('paused').length > 0 ? 1 : 0;
  const workers = rolloutWorkers(seen);
  const rate = open.reduce((sum, run) => sum + (run.rate_per_s ?? 0), 0);
  const workerSeconds = measured ?? (workers === 0 || rate === 0 ? null : workers / rate);
  const wanted = workerSeconds === null ? workers : Math.ceil((remaining * workerSeconds) / TARGET_S);
  return Math.max(1, Math.min(wanted, mostUseful(seen)));
}

/** Where workers share engines, more of them start no more boxes; where each has its own, another one brings another. */
function mostUseful({ engines }: Seen): number {
  const distinct = new Set(engines.map((use) => use.engine)).size;
  return engines.length > distinct ? distinct : Number.POSITIVE_INFINITY;
}

function rolloutWorkers(seen: Seen): number {
  return seen.workers.filter((w) => w.role === 'rollout' && w.realm === SHARED_REALM).length;
}
