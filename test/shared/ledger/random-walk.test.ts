import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Draws } from '../../../src/bench/chaos/draws.ts';
import { type Attempt, MemberLedger } from '../../../src/shared/ledger/member-ledger.ts';
import { RunLedger } from '../../../src/shared/ledger/run-ledger.ts';
import { runKey } from '../../../src/shared/ledger/script.ts';
import { LedgerModel, type ModelRules } from '../../support/ledger-model.ts';
import { completedWith } from '../../support/outcomes.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

/** Deaths of one that was alone. */
const POISON = 2;
const SEEDS = 24;
const STEPS = 140;
const WORKERS = ['worker-a', 'worker-b', 'worker-c'];
const PLACE = { pack: 'a'.repeat(64), offset: 0, bytes: 10, sha256: 'b'.repeat(64) };

/** One run on the real scripts and the same in the model, step by step. */
class Walk {
  readonly trace: string[] = [];
  private readonly draws: Draws;
  private readonly run: string;
  private readonly rules: ModelRules;
  private readonly model: LedgerModel;
  private readonly ledger: RunLedger;
  private readonly workers = new Map(WORKERS.map((name) => [name, new MemberLedger(server.redis, name)]));
  /** Every attempt that was ever begun: the dead and the overtaken still speak. */
  private readonly attempts: Attempt[] = [];

  constructor(seed: number) {
    this.draws = new Draws(BigInt(seed));
    const size = this.draws.between(1, 4);
    this.rules = {
      groups: this.draws.between(1, 3),
      size,
      atLeast: this.draws.below(2) === 0 ? null : this.draws.between(1, size),
      maxAttempts: this.draws.between(1, 3),
      refill: this.draws.below(3),
    };
    this.run = `walk-${seed}`;
    this.model = new LedgerModel(this.rules);
    this.ledger = new RunLedger(server.redis, this.run);
  }

  async open(): Promise<void> {
    const { groups, size, atLeast, maxAttempts, refill } = this.rules;
    await this.ledger.open({
      size,
      groups,
      close: atLeast === null ? 'all' : 'at_least',
      at_least: atLeast ?? 0,
      deadline_ms: 1e9,
      slot_wait_ms: 1e9,
      refill,
      max_attempts: maxAttempts,
    });
    const { epoch } = (await this.ledger.drive('driver')) as { epoch: string };
    const list = Array.from({ length: groups }, (_, g) => ({
      taskId: `t${g}`,
      place: PLACE,
      lane: 'rollout' as const,
    }));
    expect(await this.ledger.openGroups(epoch, 0, list)).toBe(groups);
  }

  async step(): Promise<void> {
    const roll = this.draws.below(100);
    if (roll < 28) return void (await this.begin());
    if (roll < 40) return this.beginSome();
    if (roll < 48) return this.accept();
    if (roll < 55) return this.acceptSome();
    if (roll < 68) return this.rolled();
    if (roll < 80) return this.fail();
    if (roll < 90) return this.expire();
    if (roll < 95) return this.bury();
    if (roll < 97) return this.join();
    return this.pause();
  }

  /** Whatever is open is brought to its end, and the two accounts must be one. */
  async end(): Promise<void> {
    if (this.model.state === 'paused') await this.pause();
    for (let g = 0; g < this.rules.groups; g++)
      for (let m = 0; m < this.rules.size; m++)
        while (!this.model.over && this.model.stageOf(g, m) !== 'accepted') {
          await this.expire(g, m);
          const rolled = ['rolled', 'verifying'].includes(this.model.stageOf(g, m));
          if (!(await this.begin(g, m, rolled ? 'verify' : 'rollout', { alone: true, suspects: true }))) break;
          await this.accept(this.attempts.at(-1));
        }
    expect(this.model.over).toBe(true);
    const entries = await this.ledger.entries(1, 1_000);
    const closings = entries.map(({ closed }) => ({
      group: closed.group,
      by: closed.closed_by,
      outcomes: closed.members.map((x) => (x.status === 'completed' ? x.reward : x.cause)),
    }));
    expect(closings).toEqual(this.model.closings);
    expect(entries.map((e) => e.closed.members.map((x) => x.member))).toEqual(
      entries.map(() => Array.from({ length: this.rules.size }, (_, m) => m)),
    );
    const outcomes = this.model.closings.flatMap((c) => c.outcomes);
    const completed = outcomes.filter((o) => typeof o === 'number').length;
    expect(await this.ledger.fields()).toMatchObject({
      accepted: String(outcomes.length),
      completed: String(completed),
      no_result: String(outcomes.length - completed),
      late: String(this.model.late),
    });
    // Nothing of a closed group stays, but in the stream and in the bitmap.
    const left = (await server.redis.keys(`${runKey(this.run)}:*`)).map((key) => key.slice(runKey(this.run).length));
    expect(left.filter((key) => /^:(g:|live|flight|deadlines|due)/.test(key))).toEqual([]);
  }

  private somebody(): [number, number] {
    return [this.draws.below(this.rules.groups), this.draws.below(this.rules.size)];
  }

  private same(what: string, real: unknown, model: unknown): void {
    this.trace.push(`${what}: ${String(real)}`);
    expect(real, this.trace.join('\n')).toEqual(model);
  }

  private async begin(
    g = this.draws.below(this.rules.groups),
    m = this.draws.below(this.rules.size),
    stage: 'rollout' | 'verify' = this.draws.below(3) === 0 ? 'verify' : 'rollout',
    company = { alone: this.draws.below(2) === 0, suspects: this.draws.below(2) === 0 },
  ): Promise<boolean> {
    const worker = WORKERS[this.draws.below(WORKERS.length)] as string;
    const answer = await (this.workers.get(worker) as MemberLedger).begin(
      { run: this.run, group: g, member: m },
      stage,
      company,
    );
    const token = 'token' in answer ? answer.token : '';
    const real = 'refused' in answer ? answer.refused : 'begun';
    const what = `begin ${g}-${m} ${stage} by ${worker}${company.alone ? ' alone' : ''}${company.suspects ? ', suspects too' : ''}`;
    this.same(what, real, this.model.begin(g, m, stage, worker, token, company));
    if ('token' in answer) this.attempts.push(answer);
    return 'token' in answer;
  }

  /** In one step, in any order and perhaps twice the same: it is as if they were begun one after another. */
  private async beginSome(): Promise<void> {
    const worker = WORKERS[this.draws.below(WORKERS.length)] as string;
    const stage = this.draws.below(3) === 0 ? 'verify' : 'rollout';
    const company = { alone: this.draws.below(2) === 0, suspects: this.draws.below(2) === 0 };
    const some = Array.from({ length: this.draws.between(2, 6) }, () => this.somebody());
    const members = some.map(([group, member]) => ({ group, member }));
    const answers = await (this.workers.get(worker) as MemberLedger).beginAll(this.run, members, stage, company);
    for (const [i, answer] of answers.entries()) {
      const [g, m] = some[i] as [number, number];
      const token = 'token' in answer ? answer.token : '';
      const real = 'refused' in answer ? answer.refused : 'begun';
      const model = this.model.begin(g, m, stage, worker, token, company);
      this.same(`begin ${i + 1} of ${some.length}: ${g}-${m} ${stage} by ${worker}`, real, model);
      if (!('token' in answer)) continue;
      expect([answer.taskId, answer.place]).toEqual([`t${g}`, PLACE]);
      this.attempts.push(answer);
    }
  }

  /** Told at one moment, which the ledger takes in one step; some of them may not speak any more. */
  private async acceptSome(): Promise<void> {
    const some = Array.from({ length: this.draws.between(2, 6) }, () => this.speaker());
    const told = some.flatMap((attempt) =>
      attempt === undefined ? [] : [{ attempt, reward: this.draws.below(1_000) / 7 }],
    );
    const worker = this.worker();
    const answers = await Promise.all(
      told.map(({ attempt, reward }) => worker.accept(attempt, completedWith(attempt.member, reward), [])),
    );
    for (const [i, { attempt, reward }] of told.entries()) {
      const { group, member, token } = attempt;
      const model = this.model.accept(group, member, token, reward);
      this.same(`accept ${i + 1} of ${told.length}: ${group}-${member} ${token.slice(0, 4)}`, answers[i], model);
    }
  }

  private speaker(): Attempt | undefined {
    // The latest ones are likelier to hold what they speak for.
    const back = Math.min(this.draws.below(4), this.draws.below(this.attempts.length + 1));
    return this.attempts.at(-1 - back);
  }

  private async accept(attempt = this.speaker()): Promise<void> {
    if (attempt === undefined) return;
    const { group, member, token } = attempt;
    const reward = this.draws.below(1_000) / 7;
    const real = await this.worker().accept(attempt, completedWith(member, reward), []);
    this.same(`accept ${group}-${member} ${token.slice(0, 4)}`, real, this.model.accept(group, member, token, reward));
  }

  private async rolled(): Promise<void> {
    const attempt = this.speaker();
    if (attempt === undefined) return;
    const { group, member, token } = attempt;
    const real = await this.worker().rolled(attempt, '{"x":1}', []);
    this.same(`rolled ${group}-${member} ${token.slice(0, 4)}`, real, this.model.rolled(group, member, token));
  }

  private async fail(): Promise<void> {
    const attempt = this.speaker();
    if (attempt === undefined) return;
    const { group, member, token } = attempt;
    const charged = this.draws.below(2) === 0;
    const real = await this.worker().fail(attempt, { cause: 'sandbox_lost', detail: 'x', charged, delayMs: 0 });
    const model = this.model.fail(group, member, token, 'sandbox_lost', charged);
    this.same(`fail ${group}-${member} ${token.slice(0, 4)} ${charged ? 'charged' : 'free'}`, real, model);
  }

  /** Its lease is over, and nobody has noticed yet. */
  private async expire(g?: number, m?: number): Promise<void> {
    const [group, member] = g === undefined || m === undefined ? this.somebody() : [g, m];
    const key = `${runKey(this.run)}:g:${group}`;
    if ((await server.redis.hget(key, `${member}.l`)) !== null) await server.redis.hset(key, `${member}.l`, 1);
    this.model.expire(group, member);
    this.trace.push(`expire ${group}-${member}`);
  }

  private async bury(): Promise<void> {
    const worker = WORKERS[this.draws.below(WORKERS.length)] as string;
    const signature = ['', 'SIGSEGV', 'SIGSEGV', 'exit 7'][this.draws.below(4)] as string;
    const model = this.model.bury(worker, signature, POISON);
    this.same(`bury ${worker} ${signature}`, await this.ledger.bury(worker, signature, POISON), model);
  }

  private async join(): Promise<void> {
    const attempt = this.speaker();
    if (attempt === undefined) return;
    const { group, member, token } = attempt;
    this.trace.push(`joined ${group}-${member} ${token.slice(0, 4)}`);
    await this.worker().joined(attempt);
    this.model.joined(group, member, token);
  }

  private async pause(): Promise<void> {
    const to = this.model.state === 'running' ? 'paused' : 'running';
    this.same(`set ${to}`, await this.ledger.setState(to, 'x'), this.model.state);
    if (to === 'paused') this.model.rest();
    else this.model.state = to;
  }

  private worker(): MemberLedger {
    return this.workers.get(WORKERS[0] as string) as MemberLedger;
  }
}

describe.concurrent('whatever happens in whatever order', () => {
  it.each(Array.from({ length: SEEDS }, (_, n) => n))(
    'the ledger answers as its model does, and counts every member once (seed %i)',
    async (seed) => {
      const walk = new Walk(seed);
      await walk.open();
      for (let i = 0; i < STEPS; i++) await walk.step();
      await walk.end();
    },
  );
});
