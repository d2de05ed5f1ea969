// What a run is doing, read from the ledger without changing it: counts, rate, what is being waited for, since
// when and until when (INTERFACE, status). Answers while the run is at work, from any process.

import { messageOf } from '../errors.ts';
import type { MemberLane } from '../lane.ts';
import { holding, otherKeys, shortKey } from '../manning.ts';
import { type Present, present, type RoleName } from '../presence.ts';
import { isKnownDead } from '../process-identity.ts';
import { privateRealm, SHARED_REALM } from '../realm.ts';
import type { Redis } from '../redis/client.ts';
import { readMemory, sayFull } from '../redis/memory.ts';
import { clockOf } from '../redis/nodes.ts';
import { realmOf } from './known-runs.ts';
import { readLaneWaits } from './lane-waits.ts';
import { isOtherVersion, requireVersion } from './ledger-version.ts';
import { allClosed, plannedGroups } from './planned-groups.ts';
import { readSettings } from './run-settings.ts';
import { runKey } from './script.ts';
import { readSilentWorkers } from './silent-workers.ts';
import { storeWaitKey } from './store-wait.ts';

export interface RunStatus {
  run: string;
  state: 'running' | 'draining' | 'paused' | 'done' | 'cancelled' | 'stopped';
  reason?: string;
  /** While something is away (see `reason`): for how long, and in how long the run stops for it. */
  paused_for_s?: number;
  stops_in_s?: number;
  groups: { planned: number; closed: number };
  members: {
    planned: number;
    accepted: number;
    completed: number;
    no_result: number;
    in_flight: number;
    by_cause: Record<string, number>;
  };
  waiting_for: { member: string; phase: string; since_s: number; deadline_s: number | null }[];
  rate_per_s: number | null;
  eta_s: number | null;
}

const SLOWEST = 10;

/** Null if the ledger does not know the run. */
export async function readStatus(redis: Redis, run: string): Promise<RunStatus | null> {
  const key = runKey(run);
  const [fields, causes, inFlight, oldest, time, realm, workers, memory, store] = await Promise.all([
    redis.hgetall(`${key}:run`),
    redis.hgetall(`${key}:causes`),
    redis.zcard(`${key}:flight`),
    oldestFirst(redis, `${key}:flight`),
    clockOf(redis, `${key}:run`),
    realmOf(redis, run),
    present(redis),
    readMemory(redis),
    redis.get(storeWaitKey(key)),
  ]);
  if (fields.state === undefined) return null;
  requireVersion(run, fields);
  const int = (name: string): number => Number(fields[name] ?? 0);
  // As the scripts count: Redis's clock, made steady.
  const nowMs = time + int('skew');
  const driven = Number(fields.driver_until ?? 0) > nowMs && !isKnownDead(fields.driver ?? '');
  const waiting = !driven ? [] : await waitingFor(redis, key, oldest, nowMs, int('clock'));
  if (driven) {
    const silent: RunStatus['waiting_for'] = [];
    for (const { member, phase, sinceMs } of await readSilentWorkers(redis, key, nowMs))
      silent.push(await waitOf(redis, key, member, phase, sinceMs, nowMs, int('clock')));
    waiting.unshift(...silent);
  }
  if (driven && fields.state === 'running' && realm !== null) {
    const out = { rollout: int('out:rollout'), light: int('out:light'), verify: int('out:verify') };
    for (const { member, phase, sinceMs } of await readLaneWaits(redis, run, realm, out, inFlight))
      waiting.push(await waitOf(redis, key, member, phase, sinceMs ?? nowMs, nowMs, int('clock')));
  }
  const groups = plannedGroups(fields);
  const planned = groups * int('size');
  const open = fields.state === 'running' && driven;
  // A run that shared workers play may have brought a collector: that one is in the run's own realm.
  const brought = (w: Present): boolean => w.role === 'collect' && w.realm === privateRealm(run);
  const near = workers.filter((w) => w.realm === realm || brought(w));
  // Measured by this sitting of the driver; a finished or resting run has no rate.
  const seconds = (nowMs - int('sitting_since')) / 1000;
  const rate =
    open && int('sitting_since') > 0 && seconds > 1 ? (int('accepted') - int('sitting_accepted')) / seconds : null;
  const standing = {
    ...stateOf(fields, driven, realm),
    ...(driven ? pauseOf(fields, nowMs) : {}),
    ...(open ? absenceOf(fields, near, await stagesOf(redis, key, oldest)) : {}),
  };
  const over = fields.state === 'done' || fields.state === 'cancelled' || fields.state === 'stopped';
  const reasons = [over ? null : sayFull(memory), over ? null : store, standing.reason ?? null].filter(
    (reason) => reason !== null,
  );
  return {
    run,
    ...standing,
    ...(reasons.length > 0 ? { reason: reasons.join('; ') } : {}),
    groups: { planned: groups, closed: int('closed') },
    members: {
      planned,
      accepted: int('accepted'),
      completed: int('completed'),
      no_result: int('no_result'),
      in_flight: driven ? inFlight : 0,
      by_cause: Object.fromEntries(Object.entries(causes).map(([cause, n]) => [cause, Number(n)])),
    },
    waiting_for: waiting,
    rate_per_s: rate === null ? null : Number(rate.toFixed(3)),
    eta_s: rate === null || rate <= 0 ? null : Math.round((planned - int('accepted')) / rate),
  };
}

/** For lists of runs, of which one that this farm cannot read must not hide the others. */
export function unreadable(run: string): (error: unknown) => RunStatus {
  return (error) => {
    if (!isOtherVersion(error)) throw error;
    const members = { planned: 0, accepted: 0, completed: 0, no_result: 0, in_flight: 0, by_cause: {} };
    const standing = {
      state: 'stopped' as const,
      reason: messageOf(error),
      groups: { planned: 0, closed: 0 },
      members,
    };
    return { run, ...standing, waiting_for: [], rate_per_s: null, eta_s: null };
  };
}

/** A run that nobody drives stands still, whatever its ledger says; it goes on with the next driver. */
function stateOf(
  fields: Record<string, string>,
  driven: boolean,
  realm: string | null,
): Pick<RunStatus, 'state' | 'reason'> {
  const reason = fields.reason ? { reason: fields.reason } : {};
  if (fields.state === 'running' && !driven && realm === SHARED_REALM)
    return { state: 'running', reason: 'waiting for a process that drives it: farm up, serve, or worker collect' };
  if (fields.state === 'running' && !driven)
    return { state: 'stopped', reason: 'nobody drives it: run the same command again, with the same run id' };
  if (fields.state === 'running' && fields.draining === '1') return { state: 'draining', ...reason };
  return { state: fields.state as RunStatus['state'], ...reason };
}

/** A pause that lasts: the run rests, or tries again what it rested for and has accepted nothing since. */
function pauseOf(
  fields: Record<string, string>,
  nowMs: number,
): Pick<RunStatus, 'reason' | 'paused_for_s' | 'stops_in_s'> {
  const tries = fields.state === 'running' && fields.paused_at === fields.accepted && fields.paused_reason;
  if (fields.state !== 'paused' && !tries) return {};
  const seconds = Math.max(0, (nowMs - Number(fields.paused_since ?? nowMs)) / 1000);
  const left = pausedS(fields.settings) - seconds;
  return {
    ...(tries ? { reason: `trying again: ${fields.paused_reason}` } : {}),
    paused_for_s: Number(seconds.toFixed(1)),
    ...(Number.isFinite(left) ? { stops_in_s: Number(Math.max(0, left).toFixed(1)) } : {}),
  };
}

function keyOf(settings: string | undefined): string | null {
  return settings === undefined ? null : readSettings(settings).keyFingerprint;
}

function pausedS(settings: string | undefined): number {
  return settings === undefined ? Number.NaN : readSettings(settings).pausedS;
}

/** Where each role has slots for members; who collects asks no verifier, and needs no key. */
const PLAYS: Record<RoleName, readonly MemberLane[]> = {
  rollout: ['rollout', 'light'],
  verify: ['verify'],
  collect: [],
};

/** Whoever is needed and not there, or there without the run's key: nothing goes on until such a worker is started. */
function absenceOf(
  fields: Record<string, string>,
  workers: readonly Present[],
  stages: readonly (string | null)[],
): Pick<RunStatus, 'reason'> {
  const rolled = (stage: string | null): boolean => stage === 'rolled' || stage === 'verifying';
  const open = !allClosed(fields);
  const toRoll = Number(fields.groups) > Number(fields.next) || stages.length === 0 || !stages.every(rolled);
  const needed: RoleName[] = [
    ...(open && toRoll ? ['rollout' as const] : []),
    ...(stages.some(rolled) ? ['verify' as const] : []),
    ...(Number(fields.closed) > Number(fields.committed) ? ['collect' as const] : []),
  ];
  const key = keyOf(fields.settings);
  const missing = needed.filter((role) => {
    const can = role === 'collect' ? workers : holding(workers, key);
    return !can.some((one) => one.role === role);
  });
  if (missing.length === 0) return {};
  const absent = missing.map((role) => {
    const others = otherKeys(workers, PLAYS[role], key).join(', ');
    const whose =
      others === '' ? '' : ` with the run’s AmberTrace key (${shortKey(key)}; those that are there: ${others})`;
    return `no ${role} worker${whose}`;
  });
  return { reason: `there is ${absent.join(' and ')}: waiting for one` };
}

/** Where those stand who have waited longest. */
async function stagesOf(redis: Redis, key: string, oldest: readonly string[]): Promise<(string | null)[]> {
  const members = oldest.filter((_, i) => i % 2 === 0).map((id) => id.split('-') as [string, string]);
  return await Promise.all(members.map(([group, index]) => redis.hget(`${key}:g:${group}`, `${index}.s`)));
}

/** Flat pairs of member and score; RESP3 answers in pairs. */
async function oldestFirst(redis: Redis, key: string): Promise<string[]> {
  const rows = (await redis.call('ZRANGE', key, '0', String(SLOWEST - 1), 'WITHSCORES')) as unknown[];
  return rows.flat().map(String);
}

async function waitingFor(
  redis: Redis,
  key: string,
  oldest: string[],
  nowMs: number,
  clockMs: number,
): Promise<RunStatus['waiting_for']> {
  const waiting: RunStatus['waiting_for'] = [];
  for (let i = 0; i + 1 < oldest.length; i += 2) {
    const member = oldest[i] as string;
    const [group, index] = member.split('-') as [string, string];
    const phase = (await redis.hget(`${key}:g:${group}`, `${index}.p`)) ?? 'waiting for a worker';
    waiting.push(await waitOf(redis, key, member, phase, Number(oldest[i + 1]), nowMs, clockMs));
  }
  return waiting;
}

async function waitOf(
  redis: Redis,
  key: string,
  member: string,
  phase: string,
  sinceMs: number,
  nowMs: number,
  clockMs: number,
): Promise<RunStatus['waiting_for'][number]> {
  const deadline = await redis.zscore(`${key}:deadlines`, member.split('-')[0] as string);
  return {
    member,
    phase,
    since_s: Number(((nowMs - sinceMs) / 1000).toFixed(1)),
    deadline_s: deadline === null ? null : Number(((Number(deadline) - clockMs) / 1000).toFixed(1)),
  };
}
