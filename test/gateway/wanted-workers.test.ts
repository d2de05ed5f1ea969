// How many workers the farm asks for: what remains, by what a member takes of one.

import { describe, expect, it } from 'vitest';
import { type Seen, ServiceTime, wantedWorkers } from '../../src/gateway/wanted-workers.ts';
import type { RunStatus } from '../../src/shared/ledger/run-status.ts';

function run(over: {
  accepted?: number;
  planned?: number;
  rate?: number | null;
  state?: RunStatus['state'];
}): RunStatus {
  const { accepted = 0, planned = 6_000, rate = null, state = 'running' } = over;
  return {
    run: 'one',
    state,
    groups: { planned: planned / 8, closed: 0 },
    members: { planned, accepted, completed: accepted, no_result: 0, in_flight: 0, by_cause: {} },
    waiting_for: [],
    rate_per_s: rate,
    eta_s: null,
  };
}

/** `engines`: of each worker, its engine. */
function seen(runs: RunStatus[], engines: string[]): Seen {
  return {
    runs,
    workers: engines.map((_, i) => ({ role: 'rollout', realm: 'shared', worker: `w${i}`, slots: { rollout: 4 } })),
    engines: engines.map((engine, i) => ({ engine, worker: `w${i}` })),
  };
}

describe('wanted workers', () => {
  it('are none where nothing remains, and one where nothing is known yet or a run only rests', () => {
    expect(wantedWorkers(seen([], ['a', 'b']))).toBe(0);
    expect(wantedWorkers(seen([run({ state: 'done', accepted: 6_000 })], ['a']))).toBe(0);
    expect(wantedWorkers(seen([run({})], []))).toBe(1);
    expect(wantedWorkers(seen([run({ state: 'paused', accepted: 10 })], []))).toBe(1);
  });

  it('are as many as end what remains in ten minutes, at the rate that was measured', () => {
    expect(wantedWorkers(seen([run({ rate: 1 })], ['a']))).toBe(10);
    expect(wantedWorkers(seen([run({ rate: 2, accepted: 3_000 })], ['a', 'b']))).toBe(5);
    expect(wantedWorkers(seen([run({ rate: 100 })], ['a', 'b', 'c']))).toBe(1);
  });

  it('are no more than there are engines where workers share them', () => {
    expect(wantedWorkers(seen([run({ rate: 1 })], ['a', 'a', 'a']))).toBe(1);
    expect(wantedWorkers(seen([run({ rate: 1 })], ['a', 'a', 'b']))).toBe(2);
    expect(wantedWorkers(seen([run({ rate: 3 })], ['a', 'b', 'c']))).toBe(10);
  });

  it('follow the workers that were there when members were accepted, not the mean of the whole run', () => {
    const service = new ServiceTime();
    // One worker does one a second; then there are four, and the run's mean rate lags behind.
    let accepted = 0;
    for (let s = 0; s <= 120; s += 10) {
      const workers = s < 60 ? ['a'] : ['a', 'b', 'c', 'd'];
      service.note(seen([run({ accepted })], workers), s * 1_000);
      accepted += workers.length * 10;
    }
    expect(service.workerSeconds).toBeCloseTo(1, 6);
    const now = seen([run({ accepted: 3_000, rate: 2.5 })], ['a', 'b', 'c', 'd']);
    expect(wantedWorkers(now, service.workerSeconds)).toBe(5);
    expect(wantedWorkers(now)).toBe(8);
  });

  it('know nothing by a look or two, and forget what is long ago', () => {
    const service = new ServiceTime();
    service.note(seen([run({})], ['a']), 0);
    expect(service.workerSeconds).toBeNull();
    service.note(seen([run({ accepted: 5 })], ['a']), 5_000);
    expect(service.workerSeconds).toBeNull();
    service.note(seen([run({ accepted: 20 })], ['a']), 20_000);
    expect(service.workerSeconds).toBe(1);
    service.note(seen([run({ accepted: 20 })], ['a']), 400_000);
    expect(service.workerSeconds).toBeNull();
  });
});
