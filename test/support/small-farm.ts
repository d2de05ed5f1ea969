// A whole farm in this process, step by step and with no time in it: what opens a run, drives it, plays its members and
// collects them does so in turns, so that the same farm does the same writes in the same order. While the collector writes a
// shard its workers go on.

import { openRun } from '../../src/producer/open-run.ts';
import { Opening } from '../../src/producer/opening.ts';
import type { Config } from '../../src/shared/config.ts';
import { type Attempt, MemberLedger } from '../../src/shared/ledger/member-ledger.ts';
import { reconcile } from '../../src/shared/ledger/reconcile.ts';
import type { DueMember, RunLedger, RunState } from '../../src/shared/ledger/run-ledger.ts';
import { identityOf } from '../../src/shared/ledger/run-settings.ts';
import { openLog } from '../../src/shared/log.ts';
import type { Completed } from '../../src/shared/outcome.ts';
import { processIdentity } from '../../src/shared/process-identity.ts';
import type { Redis } from '../../src/shared/redis/client.ts';
import type { Store } from '../../src/shared/store/store.ts';
import { collectRun } from '../../src/workers/collect/collect-run.ts';
import { Documents } from '../../src/workers/documents.ts';
import { Ending } from '../../src/workers/ending.ts';
import { playMember } from '../../src/workers/rollout/play.ts';
import type { KnownRun } from '../../src/workers/runs.ts';
import { GatedSandbox } from './gated-sandbox.ts';
import { readRunSpec } from './spec.ts';

/** Odd, so that groups are at work in parts. */
const PLACES = { rollout: 3, light: 3, verify: 3 };

/** Nobody here asks for one. */
const NO_BOXES = new GatedSandbox();

export interface SmallFarm {
  run: string;
  folder: string;
  config: Config;
  spec: Record<string, unknown>;
  redis: Redis;
  store: Store;
  /** Counts the farm's lives: of the ones before it is known that they are dead. */
  life: number;
  /** Where the run is to end before its plan, once so many groups are closed. */
  ends?: { state: RunState; exit: string; closed: number } | undefined;
  /** Told of each member that is begun. */
  onBegin?: (member: string) => void;
}

/** From the command to the run's end. */
export async function live(farm: SmallFarm): Promise<void> {
  const { run, redis, store } = farm;
  const read = await readRunSpec(farm.folder, farm.config, farm.spec);
  const owner = processIdentity().replace(/\d+$/, String(farm.life));
  const opened = await openRun({ run, redis, store, realm: 'shared', owner, key: null, ...read });
  const { ledger, settings } = opened;
  const known = { settings, store, documents: new Documents(store) };
  const { groups, groupSize } = settings.plan;
  const opening = new Opening(ledger, { settings, groups, groupSize, plan: opened.plan });
  const worker = new Worker(farm, known, owner);
  const log = openLog(farm.config, 'test');

  /** A round of the driver, and what the workers make of it. */
  const round = async (): Promise<void> => {
    const tick = await ledger.tick(opened.epoch);
    if (tick === 'lost') throw new Error(`${owner} does not drive the run`);
    if (tick === 'changed') {
      await reconcile(ledger, store, identityOf(run, settings), log);
    } else if (tick.state === 'running') {
      const { ends } = farm;
      if (ends !== undefined && tick.closed >= ends.closed) {
        await ledger.setState(ends.state, 'the test says so', ends.exit);
        return;
      }
      const ahead = (await opening.ahead(tick, opening.reach(tick))) ?? [];
      await opening.forPlaces(opened.epoch, tick, PLACES, ahead);
      await worker.play((await ledger.due(opened.epoch, PLACES))?.members ?? []);
    } else if ((await ledger.closeOpen(3)) < 3 && (tick.next < groups || tick.waiting > 0))
      await opening.openNext(opened.epoch, tick);
  };
  const meanwhile = async <T>(work: () => Promise<T>): Promise<T> => {
    await round();
    return await work();
  };
  const busy = {
    store: Object.assign(Object.create(store) as Store, {
      put: (key: string, bytes: Uint8Array) => meanwhile(() => store.put(key, bytes)),
    }),
    ledger: Object.assign(Object.create(ledger) as RunLedger, {
      commit: (shard: Parameters<RunLedger['commit']>[0]) => meanwhile(() => ledger.commit(shard)),
    }),
  };
  do await round();
  while ((await collectRun(busy.ledger, { ...known, store: busy.store }, log)) !== 'sealed');
}

/** Plays whom it is given; every fourth group goes through the verifier's stage too. */
class Worker {
  private readonly farm: SmallFarm;
  private readonly run: KnownRun;
  private readonly name: string;
  private readonly members: MemberLedger;

  constructor(farm: SmallFarm, run: KnownRun, name: string) {
    this.farm = farm;
    this.run = run;
    this.name = name;
    this.members = new MemberLedger(farm.redis, name);
  }

  async play(due: readonly DueMember[]): Promise<void> {
    for (const stage of ['rollout', 'verify'] as const) {
      const members = due.filter(({ lane }) => (lane === 'verify') === (stage === 'verify'));
      if (members.length === 0) continue;
      const begun = await this.members.beginAll(this.farm.run, members, stage);
      await Promise.all(
        begun.map(async (attempt, i) => {
          const name = `${stage} ${members[i]?.group}-${members[i]?.member}`;
          if ('refused' in attempt) throw new Error(`${name}: ${attempt.refused}`);
          this.farm.onBegin?.(name);
          await (stage === 'verify' ? this.verify(attempt) : this.roll(attempt));
        }),
      );
    }
  }

  private async verify(attempt: Attempt): Promise<void> {
    await this.members.accept(attempt, JSON.parse(attempt.rolled ?? '') as Completed, attempt.blobs);
  }

  private async roll(attempt: Attempt): Promise<void> {
    const context = { driver: NO_BOXES, farmId: 'test-farm', worker: this.name, closing: () => {} };
    const played = await playMember(attempt, this.run, { ...context, running: running(attempt) });
    if (played.status !== 'completed') throw new Error(played.detail);
    if (attempt.group % 4 === 1) await this.members.rolled(attempt, JSON.stringify(played.record), played.blobs);
    else await this.members.accept(attempt, played.record, played.blobs);
  }
}

function running(attempt: Attempt) {
  const ending = new Ending();
  return {
    attempt,
    ending,
    signal: ending.signal,
    phase: '',
    lane: 'light' as const,
    leave: () => {},
    after: null,
  };
}

/** What passing time does for members whose worker is dead, and for those whose jobs are gone. */
export async function leasesEnd({ redis, run }: SmallFarm): Promise<void> {
  const key = `farm:{${run}}`;
  for (const id of await redis.zrange(`${key}:live`, '0', '-1')) {
    const [group, member] = id.split('-');
    await redis.hset(`${key}:g:${group}`, `${member}.l`, 0);
    await redis.zadd(`${key}:live`, 0, id);
  }
}
