// The worker's side of the ledger: begin an attempt, keep its lease, hand on what was rolled, have an outcome
// accepted. Every write carries the attempt's fencing token; what comes late is told so, kept as evidence and never counted.

import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Cause, Member } from '../outcome.ts';
import { type Place, placeSchema } from '../plan/plan.ts';
import { type Blob, packBlobs, unpackBlobs } from './blob.ts';
import { defineScript } from './script.ts';

/** A member's lease, renewed every second: an event loop that stalls for six loses nothing, and take-over after a death stays within 10 s. */
export const LEASE_MS = 7_500;
export const BEAT_MS = 1_000;
/** A rolled member whose verify job is lost is queued again after this. */
const HANDOVER_MS = 10_000;

const BEGIN = defineScript('begin', { allowOom: true });
const BEAT = defineScript('beat', { allowOom: true });
const ROLLED = defineScript('rolled', { allowOom: true });
const ACCEPT = defineScript('accept', { allowOom: true });
const FAIL = defineScript('fail', { allowOom: true });

export type Stage = 'rollout' | 'verify';

export interface MemberId {
  run: string;
  group: number;
  member: number;
}

/** One try at a member; `token` is what lets it speak. */
export interface Attempt extends MemberId {
  token: string;
  /** 1 for the first; charged failures before it, plus one. */
  attempt: number;
  taskId: string;
  place: Place;
  /** What the rollout handed on, in the verify stage. */
  rolled: string | null;
  blobs: Blob[];
  /** How an earlier attempt's box died, if it did. */
  knownSignature: string | null;
}

export type Standing = 'ok' | 'superseded' | 'closed' | 'cancelled' | 'stopped';
export type Late = 'superseded' | 'closed' | 'cancelled';

export interface Failure {
  cause: Cause;
  detail: string;
  /** False for a drain, a stop, a lost Redis: it costs neither attempt nor refill. */
  charged: boolean;
  delayMs: number;
  signature?: string;
}

export class MemberLedger {
  private readonly redis: Redis;
  private readonly worker: string;

  /** `worker`: incarnation of this process, so that its members can be given back when it is known to be dead. */
  constructor(redis: Redis, worker: string) {
    this.redis = redis;
    this.worker = worker;
  }

  /** Draws a token, or says why not (`leased`, `closed`, `accepted`, `paused`, …): then the job is none of ours. */
  async begin(id: MemberId, stage: Stage): Promise<Attempt | { refused: string }> {
    const token = randomBytes(16).toString('hex');
    const answer = (await BEGIN.callBuffer(this.redis, id.run, [
      id.group,
      id.member,
      stage,
      token,
      this.worker,
      LEASE_MS,
    ])) as Buffer[];
    const [word, attempt, task, place, rolled, blobs, signature] = answer as [
      Buffer,
      Buffer,
      Buffer,
      Buffer,
      Buffer,
      Buffer,
      Buffer,
    ];
    if (word.toString() !== 'begun') return { refused: attempt.toString() };
    return {
      ...id,
      token,
      attempt: Number(attempt.toString()),
      taskId: task.toString(),
      place: placeSchema.parse(JSON.parse(place.toString())),
      rolled: rolled.length > 0 ? rolled.toString() : null,
      blobs: unpackBlobs(blobs),
      knownSignature: signature.length > 0 ? signature.toString() : null,
    };
  }

  /** Renews the leases of attempts of one run; the answers are in their order. */
  async beat(
    run: string,
    attempts: readonly { group: number; member: number; token: string; phase: string }[],
  ): Promise<Standing[]> {
    const args = attempts.flatMap((a) => [a.group, a.member, a.token, a.phase]);
    return (await BEAT.call(this.redis, run, [LEASE_MS, ...args])) as Standing[];
  }

  /** Hands an episode on to the verifier. `next` is the number of the begin to come, for the job's id. */
  async rolled(
    attempt: Attempt,
    text: string,
    blobs: readonly Blob[],
  ): Promise<{ status: 'rolled'; next: number } | { status: Late }> {
    const answer = (await ROLLED.call(this.redis, attempt.run, [
      attempt.group,
      attempt.member,
      attempt.token,
      text,
      packBlobs(blobs),
      HANDOVER_MS,
    ])) as [string, string];
    return answer[0] === 'rolled' ? { status: 'rolled', next: Number(answer[1]) } : { status: answer[0] as Late };
  }

  /** `accepted`, once; or why it was not counted. */
  async accept(attempt: Attempt, record: Member, blobs: readonly Blob[]): Promise<'accepted' | Late> {
    const cause = record.status === 'no_result' ? record.cause : '';
    const args = [
      attempt.group,
      attempt.member,
      attempt.token,
      record.status,
      JSON.stringify(record),
      packBlobs(blobs),
      cause,
    ];
    return (await ACCEPT.call(this.redis, attempt.run, args)) as 'accepted' | Late;
  }

  /** The ledger decides whether there is another try: `retry`, or `no_result` is now the outcome. */
  async fail(attempt: Attempt, failure: Failure): Promise<'retry' | 'no_result' | Late> {
    const { cause, detail, charged, delayMs, signature } = failure;
    const args = [
      attempt.group,
      attempt.member,
      attempt.token,
      cause,
      JSON.stringify(detail),
      charged ? 1 : 0,
      delayMs,
      signature ?? '',
    ];
    return (await FAIL.call(this.redis, attempt.run, args)) as 'retry' | 'no_result' | Late;
  }
}
