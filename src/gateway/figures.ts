// What the farm is doing, for `/metrics` and the page: runs and their members, workers, queues, upstreams. Read from
// Redis when asked, at most once a second for all who ask, and within a bound of time: no figures are better than a
// scrape that hangs.

import { messageOf } from '../shared/errors.ts';
import { knownRuns } from '../shared/ledger/known-runs.ts';
import { type RunStatus, readStatus, unreadable } from '../shared/ledger/run-status.ts';
import { type EngineUse, enginesInUse } from '../shared/permits/engines.ts';
import { type Present, present } from '../shared/presence.ts';
import { SHARED_REALM } from '../shared/realm.ts';
import type { Redis } from '../shared/redis/client.ts';
import type { UpstreamState } from '../workers/verify/fleet/upstream.ts';
import type { Sample } from './metrics.ts';
import { ServiceTime, wantedWorkers } from './wanted-workers.ts';

export interface Figures {
  runs: RunStatus[];
  workers: Present[];
  /** Of the shared realm's rollout workers. */
  engines: EngineUse[];
  /** Seconds of a rollout worker that a member took lately; null where too little has been seen. */
  workerSeconds: number | null;
  queues: Record<string, number>;
  upstreams: UpstreamState[];
  /** Why there are none, where Redis did not answer. */
  missing: string | null;
}

export interface FigureSources {
  redis: Redis;
  queues: () => Promise<Record<string, number>>;
  upstreams: () => Promise<UpstreamState[]>;
}

const GOOD_FOR_MS = 1_000;
const WITHIN_MS = 3_000;
/** Of a farm with thousands of old runs only the open ones and the latest are told. */
const MOST_RUNS = 200;

export class FigureReader {
  private readonly sources: FigureSources;
  private readonly service = new ServiceTime();
  private latest: { at: number; figures: Promise<Figures> } | null = null;

  constructor(sources: FigureSources) {
    this.sources = sources;
  }

  read(): Promise<Figures> {
    const now = performance.now();
    if (this.latest === null || now - this.latest.at > GOOD_FOR_MS) this.latest = { at: now, figures: this.within() };
    return this.latest.figures;
  }

  private within(): Promise<Figures> {
    const none = (missing: string): Figures => ({
      runs: [],
      workers: [],
      engines: [],
      workerSeconds: null,
      queues: {},
      upstreams: [],
      missing,
    });
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(none('Redis does not answer')), WITHIN_MS);
      this.gather()
        .then(resolve, (error: unknown) => resolve(none(messageOf(error))))
        .finally(() => clearTimeout(timer));
    });
  }

  private async gather(): Promise<Figures> {
    const { redis, queues, upstreams } = this.sources;
    const names = (await knownRuns(redis, null)).slice(-MOST_RUNS);
    const [statuses, workers, engines, queued, asked] = await Promise.all([
      Promise.all(names.map((run) => readStatus(redis, run).catch(unreadable(run)))),
      present(redis),
      enginesInUse(redis),
      queues(),
      upstreams(),
    ]);
    const shared = new Set(workers.filter((w) => w.realm === SHARED_REALM).map((w) => w.worker));
    const figures: Figures = {
      runs: statuses.filter((s) => s !== null),
      workers,
      engines: engines.filter((use) => shared.has(use.worker)),
      workerSeconds: null,
      queues: queued,
      upstreams: asked,
      missing: null,
    };
    this.service.note(figures, performance.now());
    return { ...figures, workerSeconds: this.service.workerSeconds };
  }
}

export function farmSamples(figures: Figures): Sample[] {
  const states = new Map<string, number>();
  for (const run of figures.runs) states.set(run.state, (states.get(run.state) ?? 0) + 1);
  const open = figures.runs.filter((run) => run.state !== 'done' && run.state !== 'cancelled');
  const members = open.flatMap((run) =>
    (['planned', 'accepted', 'completed', 'no_result', 'in_flight'] as const).map((state) => ({
      labels: { run: run.run, state },
      value: run.members[state],
    })),
  );
  const causes = new Map<string, number>();
  for (const run of figures.runs)
    for (const [cause, n] of Object.entries(run.members.by_cause)) causes.set(cause, (causes.get(cause) ?? 0) + n);
  const workers = new Map<string, number>();
  for (const worker of figures.workers) workers.set(worker.role, (workers.get(worker.role) ?? 0) + 1);
  const gauge = (name: string, help: string, values: Sample['values']): Sample => ({
    name,
    help,
    kind: 'gauge',
    values,
  });
  const counted = (label: string, counts: Iterable<[string, number]>): Sample['values'] =>
    [...counts].map(([key, value]) => ({ labels: { [label]: key }, value }));
  return [
    gauge('farm_figures_ok', '0: Redis did not answer, and what it would tell is missing here.', [
      { value: figures.missing === null ? 1 : 0 },
    ]),
    gauge('farm_runs', 'Runs by state.', counted('state', states)),
    gauge('farm_run_members', 'Members of runs that are not over, by state.', members),
    gauge(
      'farm_run_rate_per_second',
      'Members accepted a second.',
      open.flatMap((run) => (run.rate_per_s === null ? [] : [{ labels: { run: run.run }, value: run.rate_per_s }])),
    ),
    gauge('farm_no_result_members', 'Members of runs without a result, by cause.', counted('cause', causes)),
    gauge('farm_workers', 'Workers that are there, by role.', counted('role', workers)),
    gauge(
      'farm_engines',
      'Docker engines that rollout workers have.',
      figures.missing === null ? [{ value: new Set(figures.engines.map((use) => use.engine)).size }] : [],
    ),
    gauge(
      'farm_wanted_workers',
      'Rollout workers that would end what remains in ten minutes; no more than there are engines where workers share them.',
      figures.missing === null ? [{ value: wantedWorkers(figures, figures.workerSeconds) }] : [],
    ),
    gauge(
      'farm_queue_jobs',
      'Jobs that wait or are at work, by queue and state.',
      counted('queue', Object.entries(figures.queues)),
    ),
    ...upstreamSamples(figures.upstreams),
  ];
}

function upstreamSamples(upstreams: readonly UpstreamState[]): Sample[] {
  const of = (kind: Sample['kind'], name: string, help: string, figure: (u: UpstreamState) => number): Sample => ({
    name,
    help,
    kind,
    values: upstreams.map((u) => ({ labels: { upstream: nameOf(u) }, value: figure(u) })),
  });
  return [
    of('gauge', 'farm_upstream_breaker_open', '1 while nothing but a probe is asked.', (u) =>
      u.breaker === 'closed' ? 0 : 1,
    ),
    of('gauge', 'farm_upstream_refused', '1 while the platform refuses key or configuration.', (u) =>
      u.refused === null ? 0 : 1,
    ),
    of(
      'gauge',
      'farm_upstream_rate_limited_seconds',
      'Rest of a pause that the platform asked for.',
      (u) => u.rateLimitedForMs / 1000,
    ),
    of('gauge', 'farm_upstream_waiting', 'Queries that wait for a call.', (u) => u.waiting),
    of('gauge', 'farm_upstream_in_flight', 'Calls under way.', (u) => u.inFlight),
    of('counter', 'farm_upstream_queries_total', 'Distinct queries taken on.', (u) => u.counters.queries),
    of('counter', 'farm_upstream_calls_total', 'Calls made.', (u) => u.counters.calls),
    of('counter', 'farm_upstream_items_total', 'Queries in those calls.', (u) => u.counters.items),
    of('counter', 'farm_upstream_cache_hits_total', 'Answers that were kept from before.', (u) => u.counters.cacheHits),
    of(
      'counter',
      'farm_upstream_joins_total',
      'Answers shared with an equal query under way.',
      (u) => u.counters.joins,
    ),
    of('counter', 'farm_upstream_failures_total', 'Calls that failed.', (u) => u.counters.failures),
    of(
      'counter',
      'farm_upstream_rate_limited_total',
      'Times that the platform asked to slow down.',
      (u) => u.counters.rateLimited,
    ),
    of('counter', 'farm_upstream_opened_total', 'Times that the breaker opened.', (u) => u.counters.opened),
  ];
}

/** Two keys for one platform are two upstreams. */
export function nameOf(upstream: UpstreamState): string {
  return `${upstream.baseUrl} ${upstream.platformId} ${upstream.keyFingerprint.slice(0, 6)}`;
}
