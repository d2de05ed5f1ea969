// The queue carries ids, and nothing but ids: the ledger is the truth, a job only a hint that a member may be begun.
// So jobs are tried once, removed when over, and a doubled or lost one does no harm. A queue a lane: what must not wait for
// other work has a queue and slots of its own. The only file that knows BullMQ.

import { setTimeout as wait } from 'node:timers/promises';
import { DelayedError, Queue, Worker } from 'bullmq';
import { z } from 'zod';
import { MEMBER_LANES, type MemberLane } from './lane.ts';
import { type Connection, openRedis, type RedisPlace } from './redis/connect.ts';

/** The payload's major stands in the queue's name: workers of another major never see the job. */
const PAYLOAD_MAJOR = 3;

/** Light members that travel in one job: their episodes take less than a job costs. A sandboxed one travels alone. */
const LIGHT_AT_ONCE = { least: 8, most: 64 } as const;
/** A job carries what its lane plays in so much time. */
const LIGHT_JOB_MS = 80;

const jobSchema = z.strictObject({
  run: z.string(),
  stage: z.enum(['rollout', 'verify']),
  /** Pairs of group and member. */
  members: z
    .array(z.tuple([z.int().nonnegative(), z.int().nonnegative()]))
    .min(1)
    .max(LIGHT_AT_ONCE.most),
});
export type MemberJob = z.infer<typeof jobSchema>;

const prefixOf = (realm: string): string => `{farm:${realm}}`;
const nameOf = (lane: MemberLane): string => `${lane}-v${PAYLOAD_MAJOR}`;

// Jobs are removed when over; the queue's own event stream is not read by anybody.
const STREAMS = { events: { maxLen: 100 } };
const JOB = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;

/** Queues one realm's members. */
export class MemberQueue {
  private readonly queues: Record<MemberLane, Queue>;
  private readonly connection;

  constructor(place: RedisPlace, realm: string, extra: Connection = {}) {
    this.connection = openRedis(place, extra);
    const make = (lane: MemberLane): Queue => {
      const queue = new Queue(nameOf(lane), {
        connection: this.connection,
        prefix: prefixOf(realm),
        streams: STREAMS,
      });
      queue.on('error', () => {});
      return queue;
    };
    this.queues = { rollout: make('rollout'), light: make('light'), verify: make('verify') };
  }

  /**
   * Adds jobs; one whose id is still there is left as it is. `next` is the number of the begin that a member is queued for;
   * one that is to be alone travels by itself. `lightPace`: light members that end in a second, by which those that
   * travel together are more or fewer.
   */
  async add(
    run: string,
    members: readonly { group: number; member: number; lane: MemberLane; next: number; alone?: boolean }[],
    lightPace = 0,
  ): Promise<void> {
    const light = Math.min(LIGHT_AT_ONCE.most, Math.max(LIGHT_AT_ONCE.least, (lightPace * LIGHT_JOB_MS) / 1000));
    const adding = MEMBER_LANES.map(async (lane) => {
      const stage = lane === 'verify' ? 'verify' : 'rollout';
      const all = members.filter((m) => m.lane === lane && m.alone !== true);
      const size = lane === 'light' ? Math.floor(light) : 1;
      const together = Array.from({ length: Math.ceil(all.length / size) }, (_, i) =>
        all.slice(i * size, (i + 1) * size),
      );
      const single = members.filter((m) => m.lane === lane && m.alone === true).map((m) => [m]);
      const jobs = [...single, ...together].map((some) => {
        const { group, member, next } = some[0] as (typeof all)[number];
        const more = some.length > 1 ? `x${some.length}` : '';
        return {
          name: stage,
          data: { run, stage, members: some.map((m) => [m.group, m.member]) } satisfies MemberJob,
          opts: { ...JOB, jobId: `${run}-${group}-${member}${more}-a${next}-${stage}` },
        };
      });
      if (jobs.length > 0) await this.queues[lane].addBulk(jobs);
    });
    await Promise.all(adding);
  }

  /** Jobs that wait or are at work, by queue and state. */
  async counts(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const lane of MEMBER_LANES) {
      const { waiting = 0, wait = waiting, active = 0 } = await this.queues[lane].getJobCounts('wait', 'active');
      counts[`${lane}_waiting`] = wait;
      counts[`${lane}_active`] = active;
    }
    return counts;
  }

  /** Removes everything of a private realm, when its run is over. */
  async obliterate(): Promise<void> {
    for (const queue of Object.values(this.queues)) await queue.obliterate({ force: true });
  }

  /** Does not wait long for a Redis that is away. */
  async close(): Promise<void> {
    const closing = Promise.all(Object.values(this.queues).map((queue) => queue.close().catch(() => {})));
    await Promise.race([closing, wait(CLOSE_MS, undefined, { ref: false })]);
    this.connection.disconnect();
  }
}

const CLOSE_MS = 1_000;
const LOCKS = /could not renew lock|missing lock|lock mismatch/i;

export interface Consumer {
  /** Takes no more jobs; resolves when those at work are over. */
  drain(): Promise<void>;
  /** Leaves jobs at work to their fate. */
  close(): Promise<void>;
}

/** What `work` gives for a job that is not for this worker: others are offered it, after a moment. */
export const ELSEWHERE = 'elsewhere';
const ELSEWHERE_MS = 1_000;

/** Calls `work` for each job of a lane, at most `concurrency` at once. What `work` throws is told to `onError`; a job is never failed for it. */
export function consume(
  place: RedisPlace,
  realm: string,
  lane: MemberLane,
  concurrency: number,
  work: (job: MemberJob) => Promise<typeof ELSEWHERE | undefined>,
  onError: (error: unknown) => void,
): Consumer {
  const connection = openRedis(place);
  const worker = new Worker(
    nameOf(lane),
    async (job, token) => {
      const parsed = jobSchema.safeParse(job.data);
      // Not ours, or of another version: the ledger never heard of it, and dropping it loses nothing.
      if (!parsed.success) return onError(new Error(`a job that is not ours in ${nameOf(lane)}: ${job.id ?? '?'}`));
      try {
        if ((await work(parsed.data)) !== ELSEWHERE) return;
        await job.moveToDelayed(Date.now() + ELSEWHERE_MS, token);
      } catch (error) {
        return onError(error);
      }
      throw new DelayedError();
    },
    {
      connection,
      prefix: prefixOf(realm),
      concurrency,
      // A lock says nothing about death (the ledger's lease does): short, often renewed, and never the end of a job.
      lockDuration: 8_000,
      lockRenewTime: 1_000,
      stalledInterval: 2_000,
      maxStalledCount: 1_000_000,
      drainDelay: 1,
    },
  );
  // A lock that is lost is no event here: the ledger's token decides.
  worker.on('error', (error) => {
    if (!LOCKS.test(error.message)) onError(error);
  });
  return {
    drain: async () => {
      await worker.close(false);
      connection.disconnect();
    },
    close: async () => {
      await worker.close(true);
      connection.disconnect();
    },
  };
}
