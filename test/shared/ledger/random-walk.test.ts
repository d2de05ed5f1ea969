import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Draws } from '../../../src/bench/chaos/draws.ts';
import { refillOf } from '../../../src/shared/group.ts';
import { type Attempt, MemberLedger } from '../../../src/shared/ledger/member-ledger.ts';
import { RunLedger } from '../../../src/shared/ledger/run-ledger.ts';
import { runKey } from '../../../src/shared/ledger/script.ts';
import type { PlanEntry } from '../../../src/shared/plan/plan.ts';
import type { LedgerEntry } from '../../../src/shared/store/shard.ts';
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
/** What a tick may add to the run's clock. */
const MOST_TICK_MS = 2_000;
const FAR_MS = 9e15;
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
  /** So many rewards there are: of few, groups come out degenerate. */
  private readonly rewards: number;
  private epoch = '';
  private drivers = 0;
  private shards = 0;
  /** Groups that were read off the stream before it was trimmed. */
  private readonly collected: LedgerEntry[] = [];

  constructor(seed: number) {
    this.draws = new Draws(BigInt(seed));
    const size = this.draws.between(1, 4);
    const groups = this.draws.between(1, 5);
    this.rewards = [1, 2, 1_000][this.draws.below(3)] as number;
    this.rules = {
      groups,
      spares: this.draws.below(3) === 0 ? Array.from({ length: groups }, () => null) : this.sparesOf(groups),
      size,
      atLeast: this.draws.below(2) === 0 ? null : this.draws.between(1, size),
      maxAttempts: this.draws.between(1, 3),
      refill: this.draws.below(3),
      // Some close by them in the middle, some never.
      deadlineMs: [3_000, 12_000, 1e9][this.draws.below(3)] as number,
      slotWaitMs: [9_000, 1e9][this.draws.below(2)] as number,
    };
    this.run = `walk-${seed}`;
    this.model = new LedgerModel(this.rules);
    this.ledger = new RunLedger(server.redis, this.run);
  }

  /** Some groups have a spare, and some of these one of their own. */
  private sparesOf(groups: number): (number | null)[] {
    const spares: (number | null)[] = [];
    let next = groups;
    for (let g = 0; g < next; g++) spares.push(this.draws.below(2) === 0 ? next++ : null);
    return spares;
  }

  async open(): Promise<void> {
    const { groups, size, atLeast, maxAttempts, refill, deadlineMs, slotWaitMs } = this.rules;
    await this.ledger.open({
      size,
      groups,
      close: atLeast === null ? 'all' : 'at_least',
      at_least: atLeast ?? 0,
      deadline_ms: deadlineMs,
      slot_wait_ms: slotWaitMs,
      refill,
      max_attempts: maxAttempts,
    });
    await this.takeOver();
    await this.openGroups();
  }

  async step(): Promise<void> {
    const roll = this.draws.below(120);
    if (roll < 28) return void (await this.begin());
    if (roll < 40) return this.beginSome();
    if (roll < 48) return this.accept();
    if (roll < 55) return this.acceptSome();
    if (roll < 68) return this.rolled();
    if (roll < 80) return this.fail();
    if (roll < 88) return this.expire();
    if (roll < 92) return this.bury();
    if (roll < 94) return this.join();
    if (roll < 97) return this.pause();
    if (roll < 100) return this.openGroups();
    if (roll < 102) return this.openSpares();
    if (roll < 108) return this.tick();
    if (roll < 112) return this.due();
    if (roll < 115) return this.beat();
    if (roll < 118) return this.collect();
    if (roll < 119) return this.takeOver();
    if (this.draws.below(4) === 0) return this.cancel();
  }

  /** Whatever is open is brought to its end, and the two accounts must be one. */
  async end(): Promise<void> {
    if (this.model.state === 'paused' || this.model.state === 'stopped') await this.pause();
    while (this.model.next < this.rules.groups) await this.openGroups();
    // What is committed may call for further groups.
    for (await this.collect(true); !this.model.over; await this.collect(true)) {
      await this.openSpares();
      await this.finishOpen();
    }
    const entries = this.collected;
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
      closed: String(this.model.closings.length),
      committed: String(this.model.closings.length),
    });
    expect(this.model.closings.length).toBe(this.rules.groups + this.model.called.size);
    expect(Number((await this.ledger.field('spares')) ?? 0)).toBe(this.model.called.size);
    expect(Number((await this.ledger.field('lost')) ?? 0)).toBe(this.model.lost);
    // Nothing of a closed group stays, but in the stream and in the bitmap.
    const left = (await server.redis.keys(`${runKey(this.run)}:*`)).map((key) => key.slice(runKey(this.run).length));
    expect(left.filter((key) => /^:(g:|live|flight|deadlines|due|spares)/.test(key))).toEqual([]);
  }

  private async finishOpen(): Promise<void> {
    if (this.model.state === 'cancelled') await this.closeOpen(this.rules.spares.length);
    for (let g = 0; g < this.rules.spares.length; g++)
      for (let m = 0; m < this.rules.size; m++)
        while (!this.model.isClosed(g) && this.model.stageOf(g, m) !== 'accepted') {
          await this.expire(g, m);
          const rolled = ['rolled', 'verifying'].includes(this.model.stageOf(g, m));
          if (!(await this.begin(g, m, rolled ? 'verify' : 'rollout', { alone: true, suspects: true }))) break;
          await this.accept(this.attempts.at(-1));
        }
  }

  private somebody(): [number, number] {
    return [this.draws.below(this.rules.spares.length), this.draws.below(this.rules.size)];
  }

  private same(what: string, real: unknown, model: unknown): void {
    this.trace.push(`${what}: ${String(real)}`);
    expect(real, this.trace.join('\n')).toEqual(model);
  }

  private async begin(
    g = this.draws.below(this.rules.spares.length),
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
    if ('token' in answer) {
      this.attempts.push(answer);
      await this.keep(g, m);
    }
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
      await this.keep(g, m);
    }
  }

  /** Told at one moment, which the ledger takes in one step; some of them may not speak any more. */
  private async acceptSome(): Promise<void> {
    const some = Array.from({ length: this.draws.between(2, 6) }, () => this.speaker());
    const told = some.flatMap((attempt) => (attempt === undefined ? [] : [{ attempt, reward: this.reward() }]));
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

  private reward(): number {
    return this.draws.below(this.rewards) / 7;
  }

  private speaker(): Attempt | undefined {
    // The latest ones are likelier to hold what they speak for.
    const back = Math.min(this.draws.below(4), this.draws.below(this.attempts.length + 1));
    return this.attempts.at(-1 - back);
  }

  private async accept(attempt = this.speaker()): Promise<void> {
    if (attempt === undefined) return;
    const { group, member, token } = attempt;
    const reward = this.reward();
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

  /** Leases end when the walk says so: on a slow machine they would end by themselves. */
  private async keep(group: number, member: number): Promise<void> {
    await server.redis.hset(`${runKey(this.run)}:g:${group}`, `${member}.l`, FAR_MS);
    await server.redis.zadd(`${runKey(this.run)}:live`, 'XX', FAR_MS, `${group}-${member}`);
  }

  /** Its lease is over, and nobody has noticed yet. */
  private async expire(g?: number, m?: number): Promise<void> {
    const [group, member] = g === undefined || m === undefined ? this.somebody() : [g, m];
    const key = `${runKey(this.run)}:g:${group}`;
    if ((await server.redis.hget(key, `${member}.l`)) !== null) {
      await server.redis.hset(key, `${member}.l`, 1);
      await server.redis.zadd(`${runKey(this.run)}:live`, 'XX', 1, `${group}-${member}`);
    }
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
    if (this.model.state === 'cancelled') return;
    const rest = this.draws.below(2) === 0 ? 'paused' : 'stopped';
    const to = this.model.state === 'running' ? rest : 'running';
    this.same(`set ${to}`, await this.ledger.setState(to, 'x', to === 'stopped' ? '3' : ''), this.model.state);
    if (to === 'running') this.model.state = to;
    else this.model.rest(to);
  }

  private async cancel(): Promise<void> {
    if (this.model.state !== 'cancelled')
      this.same('cancel', await this.ledger.setState('cancelled', 'x'), this.model.cancel());
    await this.closeOpen(this.draws.between(1, 3));
  }

  private async closeOpen(most: number): Promise<void> {
    this.same('close open', String(await this.ledger.closeOpen(most)), this.model.closeOpen(most));
  }

  private async openGroups(): Promise<void> {
    const first = this.model.next;
    const count = Math.min(this.draws.between(1, 2), this.rules.groups - first);
    const list = Array.from({ length: count }, (_, i) => this.planned(first + i));
    // Of another place in the plan, or by another driver, nothing is opened.
    expect(await this.ledger.openGroups(this.epoch, first + 1, list)).toBe(-1);
    expect(await this.ledger.openGroups('0', first, list)).toBe(-1);
    const real = await this.ledger.openGroups(this.epoch, first, list);
    this.same(`open ${first} and on`, String(real), this.model.openGroups(count));
  }

  private planned(group: number): PlanEntry & { group: number } {
    const spare = this.rules.spares[group] ?? null;
    const entry = { group, taskId: `t${group}`, place: PLACE, lane: this.laneOf(group) };
    return spare === null ? entry : { ...entry, spare };
  }

  /** Those that wait, and one that nobody has called for. */
  private async openSpares(): Promise<void> {
    const waiting = await this.ledger.spares(this.draws.between(1, 3));
    const groups = [...waiting, this.draws.below(this.rules.spares.length)];
    const list = [...new Set(groups)].map((group) => this.planned(group));
    expect(await this.ledger.openSpares('0', list)).toBe(-1);
    const real = await this.ledger.openSpares(this.epoch, list);
    this.same(`open ${groups}, which refill`, String(real), this.model.openSpares(list.map(({ group }) => group)));
  }

  /** Time passes for Redis, and perhaps more than a tick may add: the farm slept. */
  private async tick(): Promise<void> {
    const ms = this.draws.below(3) === 0 ? 3_600_000 : this.draws.between(200, 1_800);
    const run = `${runKey(this.run)}:run`;
    const { ticked } = await this.ledger.fields();
    await server.redis.hset(run, 'ticked', Number(ticked) - ms);
    const before = Number(await this.ledger.field('clock'));
    const answer = await this.ledger.tick(this.epoch);
    if (typeof answer === 'string') throw new Error(`the tick was ${answer}`);
    const added = answer.clockMs - before;
    // Redis's own clock went on for some milliseconds meanwhile.
    if (this.model.state === 'running') expect(added).toBeGreaterThanOrEqual(Math.min(ms, MOST_TICK_MS));
    else expect(added).toBe(0);
    expect(added).toBeLessThanOrEqual(MOST_TICK_MS);
    this.model.tick(added, MOST_TICK_MS);
    const { closed, clockMs } = answer;
    this.same(`tick ${added}`, `${clockMs} ${closed}`, `${this.model.clockMs} ${this.model.closings.length}`);
    expect([answer.spares, answer.waiting]).toEqual([this.model.called.size, this.model.waiting.size]);
  }

  private async due(): Promise<void> {
    const waiting = this.model.due();
    const places = { rollout: this.draws.below(4), light: this.draws.below(4), verify: this.draws.below(4) };
    const answer = await this.ledger.due(this.epoch, places);
    this.trace.push(`due ${JSON.stringify(places)}: ${JSON.stringify(answer?.members)}`);
    const told = (answer?.members ?? []).map((x) => `${x.group}-${x.member}`);
    expect(new Set(told).size, this.trace.join('\n')).toBe(told.length);
    for (const id of told) expect(waiting, this.trace.join('\n')).toContain(id);
  }

  private async beat(): Promise<void> {
    const attempt = this.speaker();
    if (attempt === undefined) return;
    const { group, member, token } = attempt;
    const [real] = await this.worker().beat(this.run, [{ group, member, token, phase: 'x' }]);
    this.same(`beat ${group}-${member} ${token.slice(0, 4)}`, real, this.model.beat(group, member, token));
    if (real === 'ok' || real === 'stopped') await this.keep(group, member);
  }

  /** What is closed goes into shards, the stream is trimmed to them; a second collector's commit of the same is superseded. */
  private async collect(all = false): Promise<void> {
    for (;;) {
      const fixed = await this.ledger.fixShard({ most: 2, least: all ? 1 : 2, final: all });
      if (fixed === null) return;
      const entries = await this.ledger.entries(fixed.from, fixed.to);
      this.collected.push(...entries);
      const refills = entries.flatMap(({ closed }) => refillOf(closed) ?? []);
      const shard = { ...fixed, link: `link-${++this.shards}`, refills };
      this.same(`commit ${fixed.from} to ${fixed.to}`, await this.ledger.commit(shard), 'committed');
      expect(await this.ledger.commit(shard)).toBe('superseded');
      this.model.commit(entries.length);
      if (!all) return;
    }
  }

  /** Another driver: the one before may plan nothing any more. */
  private async takeOver(): Promise<void> {
    const before = this.epoch;
    await server.redis.hset(`${runKey(this.run)}:run`, 'driver_until', 0);
    const driven = await this.ledger.drive(`driver-${++this.drivers}`);
    if (!('epoch' in driven)) throw new Error(`the lease is ${driven.heldBy}’s`);
    this.epoch = driven.epoch;
    if (before === '') return;
    expect(await this.ledger.tick(before)).toBe('lost');
    expect(await this.ledger.due(before, { rollout: 9, light: 9, verify: 9 })).toBeNull();
  }

  private laneOf(group: number): 'rollout' | 'light' {
    return group % 2 === 0 ? 'rollout' : 'light';
  }

  /** Every open member stands in one place, and the counters are the sums of what they count. */
  async invariants(): Promise<void> {
    const key = runKey(this.run);
    const { redis } = server;
    const fields = await this.ledger.fields();
    const sets = { live: `${key}:live`, flight: `${key}:flight` };
    const [live, flight] = await Promise.all([
      redis.zrange(sets.live, '0', '-1'),
      redis.zrange(sets.flight, '0', '-1'),
    ]);
    const due = new Map<string, string>();
    for (const lane of ['rollout', 'light', 'verify'])
      for (const id of await redis.zrange(`${key}:due:${lane}`, '0', '-1')) {
        expect(due.has(id), `${id} is due twice`).toBe(false);
        due.set(id, lane);
      }
    const out: Record<string, number> = { rollout: 0, light: 0, verify: 0 };
    const open = this.model.standing;
    for (const { id, stage, begun } of open) {
      const [g, m] = id.split('-') as [string, string];
      const [real, lane] = await redis.hmget(`${key}:g:${g}`, `${m}.s`, `${m}.q`);
      expect(real ?? 'open', this.trace.join('\n')).toBe(stage);
      const verify = stage === 'rolled' || stage === 'verifying';
      const wanted = verify ? 'verify' : this.laneOf(Number(g));
      if (lane) out[lane] = (out[lane] as number) + 1;
      const where = [due.has(id) ? 'due' : '', live.includes(id) ? 'live' : '', lane ? 'place' : ''].join(' ').trim();
      const right = stage === 'accepted' ? [''] : ['due', 'live place'];
      expect(right, `${id} ${stage}: ${where}\n${this.trace.join('\n')}`).toContain(where);
      if (stage !== 'accepted') expect(due.get(id) ?? lane, this.trace.join('\n')).toBe(wanted);
      expect(flight.includes(id), `${id} in flight\n${this.trace.join('\n')}`).toBe(begun && stage !== 'accepted');
    }
    const ids = new Set(open.map((x) => x.id));
    for (const id of [...live, ...flight, ...due.keys()]) expect(ids, this.trace.join('\n')).toContain(id);
    for (const [lane, n] of Object.entries(out)) expect(Number(fields[`out:${lane}`] ?? 0), lane).toBe(n);
    const causes = Object.values(await redis.hgetall(`${key}:causes`)).reduce((sum, n) => sum + Number(n), 0);
    expect(causes).toBe(Number(fields.no_result));
    expect(Number(fields.accepted)).toBe(Number(fields.completed) + Number(fields.no_result));
    expect((await this.ledger.spares(100)).sort()).toEqual([...this.model.waiting].sort());
    expect(Number(fields.spares ?? 0)).toBe(this.model.called.size);
    expect(await redis.bitcount(`${key}:closed`)).toBe(Number(fields.closed));
    expect(await redis.xlen(`${key}:out`)).toBe(Number(fields.closed) - Number(fields.committed));
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
      for (let i = 0; i < STEPS; i++) {
        await walk.step();
        if (i % 10 === 9) await walk.invariants();
      }
      await walk.end();
    },
  );
});
