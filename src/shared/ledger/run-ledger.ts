// The run's side of the ledger: open it, drive it (one driver at a time, by epoch), tick its clock, read its
// closed groups, commit shards. What a script answers and takes stands in its header.

import { checkClosedGroup } from '../group.ts';
import { MEMBER_LANES, type MemberLane } from '../lane.ts';
import type { PlanEntry } from '../plan/plan.ts';
import type { Redis } from '../redis/client.ts';
import type { LedgerEntry } from '../store/shard.ts';
import { type Counts, sumCounts } from '../store/shard-record.ts';
import { unpackBlobs } from './blob.ts';
import { defineScript, runKey } from './script.ts';

/** A tick adds at most this to the run's clock: a farm that slept or was killed loses no group to its deadline. */
const MAX_TICK_MS = 2_000;
export const DRIVER_LEASE_MS = 10_000;
/** A member that was queued and not begun is queued again after this (its job may have been lost with a queue). */
const REQUEUE_MS = 10_000;

const OPEN_RUN = defineScript('open-run', { allowOom: false });
const ADOPT = defineScript('adopt', { allowOom: true });
const DRIVE = defineScript('drive', { allowOom: true });
const UNDRIVE = defineScript('undrive', { allowOom: true });
const OPEN_GROUPS = defineScript('open-groups', { allowOom: false });
const OPEN_SPARES = defineScript('open-spares', { allowOom: false });
const DUE = defineScript('due', { allowOom: true });
const TICK = defineScript('tick', { allowOom: true });
const BURY = defineScript('bury', { allowOom: true });
const SERVER = defineScript('server', { allowOom: true });
const RECONCILED = defineScript('reconciled', { allowOom: true });
const SIT = defineScript('sit', { allowOom: true });
const SET_STATE = defineScript('set-state', { allowOom: true });
const SET_FIELD = defineScript('set-field', { allowOom: true });
const CLOSE_OPEN = defineScript('close-open', { allowOom: true });
const FIX_SHARD = defineScript('fix-shard', { allowOom: true });
const COMMIT = defineScript('commit', { allowOom: true });
const CATCH_UP = defineScript('catch-up', { allowOom: true });

export type RunState = 'running' | 'paused' | 'done' | 'cancelled' | 'stopped';

export interface DueMember {
  group: number;
  member: number;
  lane: MemberLane;
  /** Number of the begin to come, for the job's id. */
  next: number;
  /** A worker died under it: it travels by itself, and is begun where nothing else is at work. */
  alone: boolean;
}

/** One whose lease ran out, and which was given back. */
export interface LostMember {
  group: number;
  member: number;
  worker: string;
}

/** Where the open members of one lane stand. */
export interface LaneCount {
  /** Queued or at work. */
  out: number;
  /** Those that may be queued now. */
  ready: number;
  open: number;
}

export interface Tick {
  state: RunState;
  clockMs: number;
  closed: number;
  next: number;
  open: number;
  begun: number;
  accepted: number;
  /** Groups beyond the plan's own that degenerate ones have called for. */
  spares: number;
  /** Those of them that are not open yet. */
  waiting: number;
  lanes: Record<MemberLane, LaneCount>;
}

/** What a run is opened with. */
const OPENING = [
  'settings',
  'groups',
  'size',
  'close',
  'at_least',
  'deadline_ms',
  'slot_wait_ms',
  'refill',
  'max_attempts',
] as const;

/** When, by the clock of who opened it; other versions did not always get to say so. */
const SINCE = 'opened_at';

/** Redis is another server than the one whose ledger was compared with the store. */
export class RedisChanged extends Error {
  constructor(run: string) {
    super(`run ${run}: Redis came back as another server, and its ledger was not compared with the store yet`);
  }
}

export class RunLedger {
  readonly run: string;
  /** The server on which the last shard's boundaries were fixed. */
  private fixedOn = '';
  private readonly redis: Redis;

  constructor(redis: Redis, run: string) {
    this.redis = redis;
    this.run = run;
  }

  /** True if it was opened now, false if this run is known. */
  async open(fields: Record<string, string | number>): Promise<boolean> {
    return (await OPEN_RUN.call(this.redis, this.run, Object.entries(fields).flat())) === 1;
  }

  /** One field of the run's hash; null if the run or the field is not there. */
  field(name: string): Promise<string | null> {
    return this.redis.hget(`${runKey(this.run)}:run`, name);
  }

  fields(): Promise<Record<string, string>> {
    return this.redis.hgetall(`${runKey(this.run)}:run`);
  }

  /** What it was opened with, so that it can be opened again where Redis has forgotten it; null if it is not there. */
  async opening(): Promise<Record<string, string> | null> {
    const names = [...OPENING, SINCE];
    const values = await this.redis.hmget(`${runKey(this.run)}:run`, ...names);
    const known = names.flatMap((name, i) => (typeof values[i] === 'string' ? [[name, values[i]] as const] : []));
    const fields = Object.fromEntries(known);
    return OPENING.every((name) => name in fields) ? fields : null;
  }

  /** Id of the Redis that has the run now, as the scripts see it: another one after every start, and after it was a replica. */
  async server(): Promise<string> {
    return (await SERVER.call(this.redis, this.run, [])) as string;
  }

  /** The ledger on `server` follows the store. False if Redis is another one by now. */
  async reconciled(server: string): Promise<boolean> {
    return (await RECONCILED.call(this.redis, this.run, [server])) === 1;
  }

  async setField(name: string, value: string): Promise<void> {
    await SET_FIELD.call(this.redis, this.run, [name, value]);
  }

  /** True if the ledger was behind the store's shards and follows them now. */
  async adopt(
    shards: readonly {
      to: number;
      link: string;
      groups: readonly number[];
      refills: readonly number[];
      counts: Counts;
    }[],
  ): Promise<boolean> {
    const last = shards.at(-1);
    if (!last) return false;
    const { members, completed, no_result, by_cause } = sumCounts(shards.map((s) => s.counts));
    const causes = Object.entries(by_cause);
    const refills = shards.flatMap((s) => s.refills);
    const args = [
      shards.length,
      last.to,
      last.link,
      members,
      completed,
      no_result,
      causes.length,
      ...causes.flat(),
      refills.length,
      ...refills,
      ...shards.flatMap((s) => s.groups),
    ];
    return (await ADOPT.call(this.redis, this.run, args)) === 1;
  }

  /** The driver's lease: our epoch, or who holds it ('' where the ledger does not know the run). `dead`: an owner known to be gone. */
  async drive(owner: string, dead = ''): Promise<{ epoch: string } | { heldBy: string; leftMs: number }> {
    const answer = (await DRIVE.call(this.redis, this.run, [owner, DRIVER_LEASE_MS, dead])) as string[];
    return answer[0] === 'yours'
      ? { epoch: answer[1] as string }
      : { heldBy: answer[1] as string, leftMs: Number(answer[2]) };
  }

  async undrive(owner: string): Promise<void> {
    await UNDRIVE.call(this.redis, this.run, [owner]);
  }

  /** A sitting of its driver begins: the rate is counted anew, by Redis's clock. */
  async sit(): Promise<void> {
    await SIT.call(this.redis, this.run, []);
  }

  /** How many were taken; −1 if we are not the driver or the plan stands elsewhere. */
  async openGroups(epoch: string, first: number, groups: readonly PlanEntry[]): Promise<number> {
    const args = groups.flatMap(entryArgs);
    return (await OPEN_GROUPS.call(this.redis, this.run, [epoch, first, ...args])) as number;
  }

  /** Groups that refill degenerate ones and are not open yet, the first of them. */
  async spares(limit: number): Promise<number[]> {
    if (limit < 1) return [];
    return (await this.redis.zrange(`${runKey(this.run)}:spares`, '0', String(limit - 1))).map(Number);
  }

  /** How many were opened; −1 if we are not the driver. */
  async openSpares(epoch: string, groups: readonly (PlanEntry & { group: number })[]): Promise<number> {
    const args = groups.flatMap((g) => [g.group, ...entryArgs(g)]);
    return (await OPEN_SPARES.call(this.redis, this.run, [epoch, ...args])) as number;
  }

  /** Members to be queued now, of those that wait for a place as many as `places` has; null if we are not the driver. */
  async due(
    epoch: string,
    places: Readonly<Partial<Record<MemberLane, number>>>,
    again = 500,
  ): Promise<{ members: DueMember[]; lost: LostMember[]; lanes: Record<MemberLane, LaneCount> | null } | null> {
    const args = [epoch, REQUEUE_MS, again, ...Object.entries(places).flat()];
    const flat = (await DUE.call(this.redis, this.run, args)) as string[] | number;
    if (typeof flat === 'number') return null;
    const members: DueMember[] = [];
    const lost: LostMember[] = [];
    if (flat.length === 0) return { members, lost, lanes: null };
    for (let i = 3 * MEMBER_LANES.length; i < flat.length; i += 4) {
      const [group, member] = (flat[i] as string).split('-').map(Number) as [number, number];
      const [lane, next, alone] = flat.slice(i + 1, i + 4) as [MemberLane | '', string, string];
      if (lane === '') lost.push({ group, member, worker: next });
      else members.push({ group, member, lane, next: Number(next), alone: alone === '1' });
    }
    return { members, lost, lanes: laneCounts(flat.map(Number)) };
  }

  /** Advances the clock, closes what its deadline reached. `look`: whether Redis is another server than before (`changed`). */
  async tick(epoch: string, look = true): Promise<Tick | 'lost' | 'changed'> {
    const answer = (await TICK.call(this.redis, this.run, [epoch, MAX_TICK_MS, look ? 1 : 0])) as string[];
    if (answer[0] === 'lost' || answer[0] === 'changed') return answer[0];
    const [clockMs = 0, closed = 0, next = 0, begun = 0, accepted = 0, spares = 0, waiting = 0, ...counts] = answer
      .slice(1)
      .map(Number);
    const lanes = laneCounts(counts);
    const state = answer[0] as RunState;
    return { state, clockMs, closed, next, open: openMembers(lanes), begun, accepted, spares, waiting, lanes };
  }

  /** Gives back what a dead worker held. An empty signature is a death from outside. `poisonDeaths`: of one member that was alone. */
  async bury(worker: string, signature: string, poisonDeaths: number): Promise<number> {
    return (await BURY.call(this.redis, this.run, [worker, signature, poisonDeaths])) as number;
  }

  async setState(state: RunState, reason = '', exit = ''): Promise<RunState | 'unknown'> {
    return (await SET_STATE.call(this.redis, this.run, [state, reason, exit])) as RunState | 'unknown';
  }

  async closeOpen(limit: number): Promise<number> {
    return (await CLOSE_OPEN.call(this.redis, this.run, [limit])) as number;
  }

  async fixShard(limits: {
    most: number;
    least: number;
    final: boolean;
  }): Promise<{ number: number; from: number; to: number; link: string } | null> {
    const answer = (await FIX_SHARD.call(this.redis, this.run, [
      limits.most,
      limits.least,
      limits.final ? 1 : 0,
    ])) as string[];
    if (answer.length === 0) return null;
    if (answer[0] === 'changed') throw new RedisChanged(this.run);
    this.fixedOn = answer[4] as string;
    return { number: Number(answer[0]), from: Number(answer[1]), to: Number(answer[2]), link: answer[3] as string };
  }

  /** `refills`: groups that degenerate ones of the shard call for. */
  async commit(shard: {
    number: number;
    from: number;
    to: number;
    link: string;
    refills?: readonly number[];
  }): Promise<'committed' | 'superseded'> {
    const args = [shard.number, shard.from, shard.to, shard.link, this.fixedOn, ...(shard.refills ?? [])];
    return (await COMMIT.call(this.redis, this.run, args)) as 'committed' | 'superseded';
  }

  /** Commits a shard that the store has, with the groups that `server`'s ledger has next. False if it is not so any more. */
  async catchUp(
    server: string,
    shard: { number: number; from: number; to: number; link: string; refills: readonly number[] },
  ): Promise<boolean> {
    const args = [shard.number, shard.from, shard.to, shard.link, server, ...shard.refills];
    return (await CATCH_UP.call(this.redis, this.run, args)) === 1;
  }

  /** Closed groups `from`..`to` that are still in the stream, in order. */
  async entries(from: number, to: number): Promise<LedgerEntry[]> {
    const rows = await this.redis.xrangeBuffer(`${runKey(this.run)}:out`, `${from}-0`, `${to}-0`);
    return rows.map(([id, flat]) => readEntry(id.toString(), flat));
  }
}

function entryArgs({ taskId, place, lane, spare }: PlanEntry): (string | number)[] {
  return [taskId, JSON.stringify(place), lane, spare ?? ''];
}

export function openMembers(lanes: Readonly<Record<MemberLane, LaneCount>>): number {
  return MEMBER_LANES.reduce((n, lane) => n + lanes[lane].open, 0);
}

function laneCounts(counts: readonly number[]): Record<MemberLane, LaneCount> {
  const all = MEMBER_LANES.map((lane, i) => {
    const [out = 0, ready = 0, open = 0] = counts.slice(3 * i);
    return [lane, { out, ready, open }];
  });
  return Object.fromEntries(all);
}

function readEntry(id: string, flat: Buffer[]): LedgerEntry {
  const fields = new Map<string, Buffer>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set((flat[i] as Buffer).toString(), flat[i + 1] as Buffer);
  const text = (name: string): string => fields.get(name)?.toString('utf8') ?? '';
  const seq = Number(id.split('-')[0]);
  const closed = checkClosedGroup({
    seq,
    group: Number(text('group')),
    task_id: text('task'),
    closed_by: text('by'),
    members: JSON.parse(text('members')),
    ...(fields.has('spare') ? { spare: Number(text('spare')) } : {}),
  });
  return { seq, closed, blobs: unpackBlobs(fields.get('blobs') ?? Buffer.alloc(0)) };
}
