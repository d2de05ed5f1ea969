// The worker's side of the ledger: begin an attempt, keep its lease, hand on what was rolled, have an outcome
// accepted. Every write carries the attempt's fencing token; what comes late is told so, kept as evidence and never counted.

import { randomBytes } from 'node:crypto';
import type { Cause, Member } from '../outcome.ts';
import { type Place, placeSchema } from '../plan/plan.ts';
import type { Redis } from '../redis/client.ts';
import { type Blob, packBlobs, unpackBlobs } from './blob.ts';
import { defineScript } from './script.ts';

/** A member's lease, renewed every second: an event loop that stalls for six loses nothing, and take-over after a death stays within 10 s. */
export const LEASE_MS = 7_500;
export const BEAT_MS = 1_000;

const TOKEN_BYTES = 16;

const BEGIN = defineScript('begin', { allowOom: true });
const BEAT = defineScript('beat', { allowOom: true });
const ROLLED = defineScript('rolled', { allowOom: true });
const ACCEPT = defineScript('accept', { allowOom: true });
const JOINED = defineScript('joined', { allowOom: true });
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

/** How members begin in their worker. */
export interface Company {
  /** Nothing else is at work in the process: if it dies, it died of this member. */
  alone: boolean;
  /** Nothing will be begun there until this member ends: one under which a worker died may begin. */
  suspects: boolean;
}

export const IN_COMPANY: Company = { alone: false, suspects: false };

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

interface Batch {
  args: (string | number | Buffer)[][];
  answers: Promise<('accepted' | Late)[]> | null;
}

/** A few hundred KB in a call, at most. */
const ACCEPTED_AT_ONCE = 64;

export class MemberLedger {
  private readonly redis: Redis;
  private readonly worker: string;
  /** Outcomes of a run that are told in the next step. */
  private readonly accepting = new Map<string, Batch>();

  /** `worker`: incarnation of this process, so that its members can be given back when it is known to be dead. */
  constructor(redis: Redis, worker: string) {
    this.redis = redis;
    this.worker = worker;
  }

  /** Draws a token, or says why not (`leased`, `closed`, `accepted`, `paused`, …): then the job is none of ours. `suspect`: not in this company. */
  async begin(id: MemberId, stage: Stage, company = IN_COMPANY): Promise<Attempt | { refused: string }> {
    return (await this.beginAll(id.run, [id], stage, company))[0] as Attempt | { refused: string };
  }

  /** Several members of one run in one step; the answers are in their order. */
  async beginAll(
    run: string,
    members: readonly { group: number; member: number }[],
    stage: Stage,
    company = IN_COMPANY,
  ): Promise<(Attempt | { refused: string })[]> {
    const tokens = randomBytes(TOKEN_BYTES * members.length).toString('hex');
    const tokenOf = (i: number): string => tokens.slice(2 * TOKEN_BYTES * i, 2 * TOKEN_BYTES * (i + 1));
    const ids = members.map(({ group, member }, i) => ({ run, group, member, token: tokenOf(i) }));
    const args = ids.flatMap(({ group, member, token }) => [group, member, token]);
    const how = [company.alone ? 1 : 0, company.suspects ? 1 : 0];
    const head = [stage, this.worker, LEASE_MS, ...how];
    // Blobs are there only in what was rolled.
    const call = stage === 'verify' ? BEGIN.callBuffer : BEGIN.call;
    const answers = (await call(this.redis, run, [...head, ...args])) as (string | Buffer)[][];
    const task = { taskId: '', place: null as Place | null };
    return ids.map((id, i) => attemptOf(id, answers[i] ?? [], task));
  }

  /** Something begins to work beside an attempt that was begun alone. */
  async joined({ run, group, member, token }: Attempt): Promise<void> {
    await JOINED.call(this.redis, run, [group, member, token]);
  }

  /** Renews the leases of attempts of one run; the answers are in their order. */
  async beat(
    run: string,
    attempts: readonly { group: number; member: number; token: string; phase: string }[],
  ): Promise<Standing[]> {
    const args = attempts.flatMap((a) => [a.group, a.member, a.token, a.phase]);
    return (await BEAT.call(this.redis, run, [LEASE_MS, ...args])) as Standing[];
  }

  /** Hands an episode on to the verifier: the run's driver queues it. */
  async rolled(attempt: Attempt, text: string, blobs: readonly Blob[]): Promise<'rolled' | Late> {
    const args = [attempt.group, attempt.member, attempt.token, text, packBlobs(blobs)];
    return (await ROLLED.call(this.redis, attempt.run, args)) as 'rolled' | Late;
  }

  /** `accepted`, once; or why it was not counted. What is told at the same moment goes in one step. */
  accept(attempt: Attempt, record: Member, blobs: readonly Blob[]): Promise<'accepted' | Late> {
    const cause = record.status === 'no_result' ? record.cause : '';
    const { group, member, token } = attempt;
    const args = [group, member, token, record.status, JSON.stringify(record), packBlobs(blobs), cause];
    let batch = this.accepting.get(attempt.run);
    if (!batch) {
      const opened: Batch = { args: [], answers: null };
      batch = opened;
      this.accepting.set(attempt.run, opened);
    }
    const at = batch.args.length;
    batch.args.push(args);
    batch.answers ??= this.flush(attempt.run, batch);
    if (batch.args.length >= ACCEPTED_AT_ONCE) this.accepting.delete(attempt.run);
    return batch.answers.then((answers) => answers[at] as 'accepted' | Late);
  }

  private async flush(run: string, batch: Batch): Promise<('accepted' | Late)[]> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (this.accepting.get(run) === batch) this.accepting.delete(run);
    return (await ACCEPT.call(this.redis, run, batch.args.flat())) as ('accepted' | Late)[];
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

/** `task`: of the one before; it is said once for members of a group that stand together. */
function attemptOf(
  id: MemberId & { token: string },
  answer: readonly (string | Buffer)[],
  task: { taskId: string; place: Place | null },
): Attempt | { refused: string } {
  const text = (i: number): string => answer[i]?.toString() ?? '';
  if (text(0) !== 'begun') return { refused: text(1) };
  if (answer.length > 2) {
    task.taskId = text(2);
    task.place = placeSchema.parse(JSON.parse(text(3)));
  }
  const [rolled, blobs, signature] = [text(4), answer[5], text(6)];
  return {
    run: id.run,
    group: id.group,
    member: id.member,
    token: id.token,
    attempt: Number(text(1)),
    taskId: task.taskId,
    place: task.place as Place,
    rolled: rolled === '' ? null : rolled,
    blobs: Buffer.isBuffer(blobs) ? unpackBlobs(blobs) : [],
    knownSignature: signature === '' ? null : signature,
  };
}
