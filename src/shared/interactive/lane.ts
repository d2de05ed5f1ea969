// The interactive lane: single samples that somebody waits for, scored by rollout workers without a run, a ledger or a
// store. Its whole state is in Redis, renewed by those who need it and gone by itself without them; the scripts and the
// states of a sample stand in common.lua. Gateways submit and are told, workers take and settle.

import type { Redis } from '../redis/client.ts';
import { loadScript } from '../redis/script.ts';

/** The payload's major: workers of another major never see the sample. */
const MAJOR = 1;
const FOLDER = new URL('.', import.meta.url);
/** A worker that is not heard of for so long has lost what it had. */
const LEASE_MS = 5_000;
/** Tries of a sample whose box was lost. */
const TRIES = 2;

// What ends or frees something runs on a full Redis too; what adds something does not.
const SUBMIT = loadScript(FOLDER, 'submit', { allowOom: false });
const WAITING = loadScript(FOLDER, 'waiting', { allowOom: true });
const TAKE = loadScript(FOLDER, 'take', { allowOom: true });
const BEAT = loadScript(FOLDER, 'beat', { allowOom: true });
const SETTLE = loadScript(FOLDER, 'settle', { allowOom: true });
const BACK = loadScript(FOLDER, 'back', { allowOom: true });
const WITHDRAW = loadScript(FOLDER, 'withdraw', { allowOom: true });
const TEND = loadScript(FOLDER, 'tend', { allowOom: true });

export interface TakenSample {
  id: string;
  /** Fences it: whoever has another token has lost it. */
  token: string;
  shared: string;
  content: string;
  leftMs: number;
  /** How its box died before. */
  knownSignature: string | null;
}

/** What a gateway is told of a sample: it was taken, lost with its worker, or is over. */
export type Told = { kind: 'taken' | 'lost'; id: string } | { kind: 'over'; id: string; outcome: string };

export class InteractiveLane {
  private readonly redis: Redis;
  private readonly key: string;
  private readonly leaseMs: number;

  constructor(redis: Redis, realm: string, leaseMs = LEASE_MS) {
    this.redis = redis;
    this.leaseMs = leaseMs;
    this.key = `farm:{lane-v${MAJOR}:${realm}}`;
  }

  /** Samples wait: a message on it may be lost, so look from time to time. */
  get bell(): string {
    return `${this.key}:bell`;
  }

  /** False where what the call's samples share must be sent (again). */
  async submit(
    call: string,
    gate: string,
    leftMs: number,
    shared: string | null,
    samples: readonly { id: string; content: string }[],
  ): Promise<boolean> {
    const rest = samples.flatMap(({ id, content }) => [id, content]);
    const left = Math.max(1, Math.floor(leftMs));
    return (await SUBMIT.call(this.redis, this.key, [call, gate, left, shared ?? '', ...rest])) === 1;
  }

  /** `all`: nobody waits for any other sample of the call either. */
  async withdraw(call: string, ids: readonly string[], all = false): Promise<void> {
    await WITHDRAW.call(this.redis, this.key, [call, all ? '1' : '0', ...ids]);
  }

  /** Gives those of `ids` that are over or forgotten. */
  async tend(gate: string, ids: readonly string[]): Promise<string[]> {
    return (await TEND.call(this.redis, this.key, [gate, ...ids])) as string[];
  }

  /** What `gate` was told; waits for it as long as `waitMs`, on a connection of its own. */
  async told(listening: Redis, gate: string, waitMs: number): Promise<Told[]> {
    const list = `${this.key}:r:${gate}`;
    const answer = await listening.call('BLMPOP', String(waitMs / 1000), '1', list, 'LEFT', 'COUNT', '256');
    return answer === null ? [] : (answer as [string, string[]])[1].map(readTold);
  }

  async someWait(): Promise<boolean> {
    return ((await WAITING.call(this.redis, this.key, [])) as number) > 0;
  }

  async take(token: string): Promise<TakenSample | null> {
    const answer = (await TAKE.call(this.redis, this.key, [token, this.leaseMs])) as string[];
    if (answer.length === 0) return null;
    const [id, shared, content, left, signature] = answer as [string, string, string, string, string];
    return { id, token, shared, content, leftMs: Number(left), knownSignature: signature || null };
  }

  /** Gives the ids that are not the worker's any more. */
  async beat(held: readonly TakenSample[]): Promise<string[]> {
    const rest = held.flatMap(({ id, token }) => [id, token]);
    return (await BEAT.call(this.redis, this.key, [this.leaseMs, ...rest])) as string[];
  }

  async settle({ id, token }: TakenSample, outcome: string): Promise<void> {
    await SETTLE.call(this.redis, this.key, [id, token, outcome]);
  }

  /** Its box was lost; `outcome` is what becomes of it if that was its last try. */
  async again({ id, token }: TakenSample, signature: string, outcome: string): Promise<void> {
    await BACK.call(this.redis, this.key, [id, token, TRIES, signature, outcome]);
  }

  /** The worker stops: another begins it anew. */
  async giveBack({ id, token, knownSignature }: TakenSample): Promise<void> {
    await BACK.call(this.redis, this.key, [id, token, 0, knownSignature ?? '', '']);
  }
}

function readTold(text: string): Told {
  const [kind, id, ...rest] = text.split(' ');
  if (kind === 'r') return { kind: 'over', id: id as string, outcome: rest.join(' ') };
  return { kind: kind === 't' ? 'taken' : 'lost', id: id as string };
}
