// Retries, breaker and cache as scripts of calls: the product's own scripts in a real Redis, with the case's clock in
// place of Redis's; its own settlement of what a platform over real HTTP answers. Rests are recorded and not slept, as
// there. The library counts a query once when its tries are spent, the fleet counts every request: the threshold is
// multiplied by the tries, which is the same point.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isMap, pyEqual, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import type { Redis } from '../../src/shared/redis/client.ts';
import { openRedis } from '../../src/shared/redis/connect.ts';
import { ask } from '../../src/shared/redis/embedded.ts';
import { cacheKey } from '../../src/workers/verify/cache-key.ts';
import type { Answer } from '../../src/workers/verify/client.ts';
import { spoken } from '../../src/workers/verify/fleet/coded.ts';
import { codingOf } from '../../src/workers/verify/fleet/coding.ts';
import { Exchange } from '../../src/workers/verify/fleet/exchange.ts';
import type { ExchangeReply } from '../../src/workers/verify/fleet/exchange-reply.ts';
import { readAnswer } from '../../src/workers/verify/fleet/flight-text.ts';
import { Seal } from '../../src/workers/verify/fleet/seal.ts';
import { settlementOf } from '../../src/workers/verify/fleet/settlement.ts';
import { FLEET_KEY, flightKey, readUpstreams } from '../../src/workers/verify/fleet/upstream.ts';
import { PlatformCaller } from '../../src/workers/verify/platform-call.ts';
import { reportFromDenial, reportFromResult } from '../../src/workers/verify/report.ts';
import type { Query } from '../../src/workers/verify/wire-request.ts';
import { ScriptedPlatform } from './scripted-platform.ts';
import type { VectorCase } from './vector-file.ts';
import { judge, notRun, type Runner, type Verdict } from './verdict.ts';

const PLATFORM = 12n;
const API_KEY = 'at_case_0123456789';
const UPSTREAM = 'case';

export function breakerRunner(): Runner {
  const folder = mkdtempSync(path.join(tmpdir(), 'farm-vectors-'));
  const socket = path.join(folder, 'redis.sock');
  const server = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', folder], {
    stdio: 'ignore',
  });
  const platform = new ScriptedPlatform();
  const redis = openRedis({ options: { path: socket }, address: 'the cases', embedded: true });
  const ready = up(server, socket).then(() => platform.listen());
  return {
    run: async (one) => {
      const reason = unlike(one);
      if (reason !== null) return notRun(reason);
      const baseUrl = await ready;
      await redis.flushall();
      return await new Play(one, redis, platform, baseUrl).verdict();
    },
    close: async () => {
      redis.disconnect();
      await platform.close();
      server.kill('SIGKILL');
      if (server.exitCode === null) await once(server, 'exit').catch(() => {});
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function up(server: ChildProcess, socket: string): Promise<void> {
  server.on('error', () => {});
  for (let i = 0; (await ask(socket, 'PING', 500)) === null; i++) {
    if (i > 100) throw new Error('redis-server did not start');
    await wait(50);
  }
}

/** What the product has no setting for. */
function unlike(one: VectorCase): string | null {
  const config = one.in.get('config') as ValueMap;
  if (config.has('backoff_max')) return 'the longest rest between tries is not a setting here';
  if (config.get('jitter') === 'max') return 'the spread of rests between tries is our own';
  // There the probe is a query with all its tries, while others wait for none.
  const probe = (config.get('max_retries') ?? 2n) !== 0n && opsOf(one).some((op) => op.get('op') === 'advance');
  return probe ? 'a probe is one request here, for the whole fleet, and has no second try' : null;
}

function opsOf(one: VectorCase): ValueMap[] {
  return one.in.get('script') as ValueMap[];
}

/** What one op came to, in the reference's words. */
interface Outcome {
  kinds: string[];
  calls: number;
  sleeps: number[];
  label: string;
}

class Play {
  private readonly one: VectorCase;
  private readonly redis: Redis;
  private readonly platform: ScriptedPlatform;
  private readonly caller: PlatformCaller;
  private readonly exchange: Exchange;
  private readonly seal = new Seal(API_KEY, UPSTREAM);
  private readonly tries: number;
  private readonly backoffMs: number;
  private readonly cache: boolean;
  private clockS: number;

  constructor(one: VectorCase, redis: Redis, platform: ScriptedPlatform, baseUrl: string) {
    this.one = one;
    this.redis = redis;
    this.platform = platform;
    const config = one.in.get('config') as ValueMap;
    const number = (name: string, fallback: number): number => Number(config.get(name) ?? fallback);
    this.tries = number('max_retries', 2) + 1;
    this.backoffMs = number('backoff_base', 0.5) * 1000;
    this.cache = config.get('cache') !== false;
    this.clockS = number('clock_start', 0);
    this.caller = new PlatformCaller({ baseUrl, platformId: PLATFORM, apiKey: API_KEY });
    this.exchange = new Exchange(
      redis,
      { upstream: UPSTREAM, process: 'player', platform: String(PLATFORM), key: 'k' },
      {
        concurrency: Math.max(1, number('max_concurrency', 1)),
        breakerThreshold: number('breaker_threshold', 5) * this.tries,
        breakerCooldownMs: number('breaker_cooldown', 30) * 1000,
        windowMs: 0,
        clock: () => this.now,
      },
    );
  }

  async verdict(): Promise<Verdict> {
    try {
      await this.redis.hset(`${FLEET_KEY}:u:${UPSTREAM}`, 'single_till', Number.MAX_SAFE_INTEGER);
      const log = this.one.out.get('log') as ValueMap[];
      for (const [i, op] of opsOf(this.one).entries()) {
        if (op.get('op') === 'advance') {
          this.clockS += Number(op.get('seconds'));
          continue;
        }
        const ours = await this.play(op);
        const why = this.difference(ours, op, log[i] as ValueMap);
        if (why !== null)
          return judge(this.one, false, `op ${i}: ${why}`, [
            'equal-queries-once',
            'garbage-is-a-failure',
            'finite-numbers',
          ]);
      }
      return judge(this.one, true, '');
    } finally {
      this.caller.close();
    }
  }

  /** Far from 0, where a time would be none. */
  private get now(): number {
    return 1_000_000 + Math.floor(this.clockS * 1000);
  }

  private async play(op: ValueMap): Promise<Outcome> {
    this.platform.requests.length = 0;
    this.platform.script = ((op.get('upstream') ?? []) as ValueMap[]).map(outcomeOf);
    const items = (op.get('op') === 'batch' ? op.get('items') : [op.get('item')]) as Value[];
    const queries = items.filter((item) => item !== null).map((item) => queryOf(item as Value, op));
    const byKey = new Map(queries.map((query) => [flightKey(UPSTREAM, 'e', cacheKey(PLATFORM, query)), query]));
    const answers = new Map<string, Answer>();
    const sleeps: number[] = [];
    if (byKey.size > 0) {
      const options = {
        epoch: 'e',
        cache: this.cache,
        ttlMs: 86_400_000,
        budget: null,
        joined: 0,
        now: true,
        shown: 'x',
      };
      const wanted = [...byKey.keys()].map((key) => ({ key, sealed: null }));
      const reply = await this.exchange.join(options, wanted);
      for (const [i, { key }] of wanted.entries()) {
        const { code, value } = reply.own[i] as { code: string; value: Buffer };
        if (code === 'v') answers.set(key, readAnswer(this.seal.open(value, key) as string) as Answer);
        else if (code !== 'f') answers.set(key, spoken(code, value.toString()));
      }
      await this.work(reply, byKey, answers, sleeps);
    }
    const [state] = await readUpstreams(this.redis);
    const till = Number((await this.redis.hget(`${FLEET_KEY}:u:${UPSTREAM}`, 'till')) ?? 0);
    const label = state?.breaker === 'open' ? (till <= this.now ? 'half-open-ready' : 'open') : 'closed';
    const kinds = items.map((item) =>
      item === null ? '-' : kindOf(answers.get(flightKey(UPSTREAM, 'e', cacheKey(PLATFORM, queryOf(item, op))))),
    );
    return { kinds, calls: this.platform.requests.length, sleeps, label };
  }

  /** Makes the calls that Redis hands out, until there are none. */
  private async work(
    first: ExchangeReply,
    byKey: Map<string, Query>,
    answers: Map<string, Answer>,
    sleeps: number[],
  ): Promise<void> {
    const line = [...first.calls];
    for (let call = line.shift(); call; call = line.shift()) {
      const queries = call.items.map((item) => byKey.get(item.key) as Query);
      const result = await this.caller.call(queries, true, { timeoutMs: 10_000, now: this.now });
      const limits = { tries: this.tries, patienceMs: 120_000, backoffMs: this.backoffMs, random: () => 0 };
      const said = settlementOf(result, call.items, limits);
      const items = call.items.map((item, i) => {
        const fate = said.fates[i] as (typeof said.fates)[0];
        if (fate.kind === 'answered') answers.set(item.key, fate.answer);
        if (fate.kind === 'again') sleeps.push(fate.delayMs / 1000);
        return codingOf(item, fate.kind === 'again' ? { ...fate, delayMs: 0 } : fate, this.seal);
      });
      const reply = await this.exchange.settle([{ call, permit: call.token, last: true, heir: null, said, items }]);
      line.push(...reply.calls);
    }
  }

  private difference(ours: Outcome, op: ValueMap, log: ValueMap): string | null {
    const reports = (log.has('reports') ? log.get('reports') : [log.get('report') ?? null]) as Value[];
    const theirs = reports.map((report) =>
      isMap(report) ? String(report.get('kind')).replace(/^floor:.*/, 'floor') : '-',
    );
    if (ours.kinds.join() !== theirs.join()) return `${ours.kinds.join()} for ${theirs.join()}`;
    if (!pyEqual(BigInt(ours.calls), log.get('upstream_calls') ?? null)) return `${ours.calls} calls`;
    const rests = log.get('sleeps') as (number | bigint)[];
    if (rests.map(Number).join() !== ours.sleeps.join()) return `rests of ${ours.sleeps.join()} s`;
    const label = (log.get('breaker') as ValueMap).get('label');
    if (label !== ours.label) return `breaker ${ours.label}`;
    return op.get('show_args') === true ? this.arguments(log.get('query_args') as ValueMap) : null;
  }

  private arguments(theirs: ValueMap): string | null {
    const body = this.platform.requests[0]?.body ?? new Map<string, Value>();
    const other = ['query', 'facts', 'relations', 'explain', 'predictions'].filter(
      (name) => !pyEqual(body.get(name) ?? null, theirs.get(name) ?? null),
    );
    return other.length === 0 ? null : `another ${other.join()}`;
  }
}

function queryOf(item: Value, op: ValueMap): Query {
  const field = (name: string): ValueMap | null => (op.get(name) ?? null) as ValueMap | null;
  return {
    query: 'Lift the lock?',
    facts: new Map([['item', item]]),
    relations: field('relations'),
    predictions: field('predictions'),
  };
}

/** What the SDK's refusal of a query is on the wire; its other outcomes are the scripted platform's. */
function outcomeOf(outcome: ValueMap): ValueMap {
  if (outcome.get('do') === 'ok' && !outcome.has('result'))
    return new Map<string, Value>([
      ...outcome,
      [
        'result',
        new Map<string, Value>([
          ['decision', 'lift'],
          ['proof_checked', true],
        ]),
      ],
    ]);
  if (outcome.get('do') !== 'deny') return outcome;
  return new Map<string, Value>([
    ['do', 'sdk-error'],
    ['status_code', 422n],
    ['code', 'validation_error'],
    ['message', outcome.get('message') ?? ''],
  ]);
}

function kindOf(answer: Answer | undefined): string {
  if (answer?.kind === 'denial') return reportFromDenial(answer.denial).proofChecked ? 'certified' : 'deny';
  if (answer?.kind === 'verdict') return reportFromResult(answer.data).proofChecked ? 'certified' : 'uncertified';
  return 'floor';
}
