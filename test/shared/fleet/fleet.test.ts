import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { Fleet, fleetKey, runsInLane, windowNow, windowOf } from '../../../src/shared/fleet/fleet.ts';
import { announce } from '../../../src/shared/presence.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';
import { until } from '../../support/until.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

let realms = 0;
/** A realm of its own, with a worker of so many rollout slots; `ask` gives the places dealt. */
async function openFleet({ onTestFinished }: TestContext, slots: number) {
  const realm = `fleet-${++realms}`;
  if (slots > 0) {
    const seat = await announce(server.redis, { role: 'rollout', realm, worker: realm, slots: { rollout: slots } });
    onTestFinished(() => seat.stop());
  }
  const fleet = new Fleet(server.redis, server.place, realm);
  const last = new Fleet(server.redis, server.place, realm, 0);
  onTestFinished(() => fleet.close());
  const by =
    (who: Fleet) =>
    async (run: string, out: number, want: number): Promise<number> =>
      (await who.deal(run, [{ lane: 'rollout', out, want }])).rollout;
  return { realm, fleet, ask: by(fleet), askLast: by(last) };
}

/** The rule, in the plainest words: one place at a time, to whoever holds least, the longest unserved first. */
class Model {
  readonly runs = new Map<string, { out: number; grant: number; want: number; turn: number; dead: boolean }>();
  private turn = 0;
  private readonly window: number;
  constructor(window: number) {
    this.window = window;
  }

  ask(name: string, out: number, want: number, dies: boolean): number {
    for (const [other, r] of this.runs) if (r.dead && other !== name) this.runs.delete(other);
    const me = this.runs.get(name) ?? { out, grant: 0, want, turn: ++this.turn, dead: false };
    this.runs.set(name, me);
    me.grant = Math.min(me.grant, want);
    Object.assign(me, { out, want: want - me.grant, dead: dies });
    for (;;) {
      const askers = [...this.runs.values()].filter((r) => r.want > 0);
      const next = askers.sort((a, b) => a.out + a.grant - (b.out + b.grant) || a.turn - b.turn)[0];
      if (next === undefined || this.held() >= this.window) break;
      next.grant++;
      next.want--;
      next.turn = ++this.turn;
    }
    const dealt = me.grant;
    me.out += dealt;
    me.grant = 0;
    if (me.out + me.want === 0) this.runs.delete(name);
    if (this.runs.size === 0) this.turn = 0;
    return dealt;
  }

  held(): number {
    return [...this.runs.values()].reduce((n, r) => n + r.out + r.grant, 0);
  }
}

function drawing(seed: number): (below: number) => number {
  let s = seed >>> 0;
  return (below) => {
    s = (s + 0x6d2b79f5) >>> 0;
    let x = Math.imul(s ^ (s >>> 15), 1 | s);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) % below;
  };
}

describe.concurrent('the fleet’s window', () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'is dealt as the model deals it, in any order of asking, ending and dying (seed %i)',
    async (seed) => {
      const draw = drawing(seed);
      const realm = `model-${seed}`;
      const slots = 1 + draw(20);
      const seat = await announce(server.redis, { role: 'rollout', realm, worker: realm, slots: { rollout: slots } });
      const fleet = new Fleet(server.redis, server.place, realm);
      const dying = new Fleet(server.redis, server.place, realm, 0);
      const window = windowOf('rollout', slots);
      const model = new Model(window);
      const out = new Map<string, number>();
      for (let step = 0; step < 400; step++) {
        const run = `r${draw(8)}`;
        const had = out.get(run) ?? 0;
        const now = had - (had > 0 ? draw(had + 1) : 0);
        const want = [0, draw(4), 1_000][draw(3)] as number;
        const dies = draw(20) === 0;
        const dealt = (await (dies ? dying : fleet).deal(run, [{ lane: 'rollout', out: now, want }])).rollout;
        expect([seed, step, run, dealt]).toEqual([seed, step, run, model.ask(run, now, want, dies)]);
        expect(dealt).toBeLessThanOrEqual(want);
        // Never more than the window, and none left over while somebody asks.
        expect(model.held()).toBeLessThanOrEqual(window);
        const asking = [...model.runs.values()].some((r) => r.want > 0);
        if (asking) expect(model.held()).toBe(window);
        if (dies) out.delete(run);
        // A driver need not fill what it was dealt.
        else out.set(run, now + (draw(4) === 0 ? draw(dealt + 1) : dealt));
      }
      await seat.stop();
      fleet.close();
    },
  );

  it('is all a lone run’s, and shared evenly as places fall free once another asks', async (context) => {
    const { ask } = await openFleet(context, 8);
    expect(await ask('big', 0, 1_000)).toBe(12);
    expect(await ask('small', 0, 100)).toBe(0);
    // Every place that falls free goes to the small one, until both hold half.
    expect(await ask('big', 9, 1_000)).toBe(0);
    expect(await ask('small', 0, 100)).toBe(3);
    expect(await ask('big', 5, 1_000)).toBe(1);
    expect(await ask('small', 3, 100)).toBe(3);
    expect(await ask('big', 6, 1_000)).toBe(0);
  });

  it('gives equal shares of the slots, not of the starts: a run of long members does not come to hold them all', async (context) => {
    const { ask } = await openFleet(context, 8);
    const held = { long: await ask('long', 0, 1_000), short: 0 };
    // The short one comes when half of the long one's have ended; its own end each turn, the long one's never again.
    await ask('short', 0, 1_000);
    held.long = 6 + (await ask('long', 6, 1_000));
    for (let turn = 0; turn < 50; turn++) {
      held.short = await ask('short', 0, 1_000);
      held.long += await ask('long', held.long, 1_000);
    }
    expect(held).toEqual({ long: 6, short: 6 });
  });

  it('starves nobody: with more runs than places each has its turn before anyone has a second', async (context) => {
    const { ask } = await openFleet(context, 1);
    const runs = ['a', 'b', 'c', 'd', 'e'];
    const served: string[] = [];
    for (let round = 0; round < 40; round++) for (const run of runs) if ((await ask(run, 0, 5)) > 0) served.push(run);
    const turns = runs.map((run) => served.filter((s) => s === run).length);
    expect(Math.min(...turns)).toBeGreaterThan(0);
    expect(Math.max(...turns) - Math.min(...turns)).toBeLessThanOrEqual(2);
  });

  it('comes back from a driver that died, when its lease is over', async (context) => {
    const { ask, askLast } = await openFleet(context, 4);
    expect(await askLast('dead', 0, 100)).toBe(6);
    expect(await ask('alive', 0, 100)).toBe(6);
  });

  it('counts what a run had out when another driver takes it over, and deals nothing above the window', async (context) => {
    const { ask, askLast } = await openFleet(context, 4);
    expect(await askLast('orphan', 0, 100)).toBe(6);
    expect(await ask('other', 0, 2)).toBe(2);
    expect(await ask('orphan', 6, 100)).toBe(0);
    expect(await ask('other', 2, 100)).toBe(0);
  });

  it('lets a few members wait where no worker is there yet, and widens when one comes', async (context) => {
    const { realm, fleet, ask } = await openFleet(context, 0);
    expect(await ask('r', 0, 100)).toBe(8);
    const seat = await announce(server.redis, { role: 'rollout', realm, worker: realm, slots: { rollout: 40 } });
    context.onTestFinished(() => seat.stop());
    const dealt = await until('the worker is seen', async () => ask('r', 8, 100), { everyMs: 50 });
    expect(dealt).toBe(52);
    fleet.close();
  });

  it('wakes a run that was dealt places when another asked', async (context) => {
    const { fleet, ask } = await openFleet(context, 2);
    let woken = 0;
    await fleet.listen('waiting', () => woken++);
    await ask('first', 0, 3);
    expect(await ask('waiting', 0, 1)).toBe(0);
    await ask('first', 1, 10);
    await until('it is woken', () => woken === 1);
    expect(await ask('waiting', 0, 1)).toBe(1);
  });

  it('keeps nothing of runs that are over, and one line of those that are there', async (context) => {
    const { realm, ask } = await openFleet(context, 4);
    for (let i = 0; i < 20; i++) await ask(`r${i}`, 0, 1);
    expect(await runsInLane(server.redis, realm, 'rollout')).toHaveLength(20);
    // Also where every driver dies, the key goes by itself.
    expect(await server.redis.pttl(`${fleetKey(realm)}:rollout`)).toBeGreaterThan(0);
    for (let i = 0; i < 20; i++) await ask(`r${i}`, 0, 0);
    expect(await server.redis.exists(`${fleetKey(realm)}:rollout`)).toBe(0);
  });
});

describe.concurrent('the window of light members', () => {
  async function openLight({ onTestFinished }: TestContext, slots: number) {
    const realm = `light-${++realms}`;
    const seat = await announce(server.redis, { role: 'rollout', realm, worker: realm, slots: { light: slots } });
    const fleet = new Fleet(server.redis, server.place, realm);
    onTestFinished(async () => {
      await seat.stop();
      fleet.close();
    });
    const ask = async (run: string, out: number, want: number): Promise<number> =>
      (await fleet.deal(run, [{ lane: 'light', out, want }])).light;
    return { fleet, ask, now: () => windowNow(server.redis, realm, 'light', slots) };
  }

  it('grows with the pace at which they end, to so many a slot, and falls back when they take long', async (context) => {
    const { fleet, ask, now } = await openLight(context, 4);
    const least = windowOf('light', 4);
    expect(await ask('quick', 0, 10_000)).toBe(least);
    // Whatever is dealt has ended when it asks again.
    let dealt = least;
    await until('the window is as large as it gets', async () => {
      dealt = await ask('quick', 0, 10_000);
      return dealt === 64 * 4;
    });
    expect(await now()).toBe(64 * 4);
    expect(fleet.lightPace).toBeGreaterThan(0);
    // Now they are at work for long.
    await until('the window is what the slots give', async () => {
      await ask('quick', dealt, 10_000);
      return (await now()) === least;
    });
  });

  it('is one for all: a run of long members has its share beside a quick one', async (context) => {
    const { ask } = await openLight(context, 4);
    await until('the quick one has more than the slots give', async () => (await ask('quick', 0, 10_000)) > 40);
    let held = 0;
    await until('the slow one holds places', async () => {
      held += await ask('slow', held, 12);
      await ask('quick', 0, 10_000);
      return held === 12;
    });
  });
});
