// Who works on a run: workers of the shared realm where they can play all of it, wherever they are, else workers of its
// own. Only who brings rollout workers needs an engine here; what images a run's boxes have is for its workers to fix.

import type { Config } from '../shared/config.ts';
import { missingError } from '../shared/errors.ts';
import { laneOf, type MemberLane, type Slots } from '../shared/lane.ts';
import { type Present, present } from '../shared/presence.ts';
import { privateRealm, SHARED_REALM } from '../shared/realm.ts';
import type { Redis } from '../shared/redis/client.ts';
import type { TaskSource } from '../shared/spec/source.ts';
import type { RunSpec } from '../shared/spec/spec.ts';
import { requireSandbox } from './needs.ts';
import { ordersFor } from './roles.ts';
import type { RoleOrder } from './supervisor.ts';

export interface Crew {
  realm: string;
  /** Workers to bring. */
  orders: readonly RoleOrder[];
}

export interface CrewWish {
  run: string;
  sandbox: Pick<RunSpec['sandbox'], 'image' | 'runtime'>;
  source: Pick<TaskSource, 'environments' | 'verified'>;
  /** Rollout slots of workers of its own. */
  slots: number | Slots | null;
  /** The command goes away: all has to be there. */
  detach: boolean;
}

/** Throws FarmError (exit 3) if the run has nobody to play it and cannot bring them. */
export async function findCrew(config: Config, redis: Redis, wish: CrewWish): Promise<Crew> {
  const { run, sandbox, source, slots, detach } = wish;
  const shared = (await present(redis)).filter((one) => one.realm === SHARED_REALM);
  const lanes = lanesOf(source);
  const unmanned = lanesWithout(shared, lanes);
  const collected = shared.some((one) => one.role === 'collect');
  if (detach && !(unmanned.length === 0 && collected)) {
    const missing = [...unmanned.map((lane) => `with ${lane} slots`), ...(collected ? [] : ['that collects'])];
    throw missingError(
      'no_workers',
      `--detach needs workers that are there already, and there is none ${missing.join(', and none ')}`,
      'start ./farm up, or ./farm worker ROLE, on the same Redis',
    );
  }
  const own = ordersFor({ realm: privateRealm(run), run, rollout: slots, verify: null, verifies: source.verified > 0 });
  // Its collector is for this run alone, and not to be taken for one of the shared realm.
  if (unmanned.length === 0)
    return { realm: SHARED_REALM, orders: collected ? [] : own.filter((order) => order.role === 'collect') };
  if (lanes.has('rollout')) await requireSandbox(config, sandbox.image, sandbox.runtime, unmanned);
  return { realm: privateRealm(run), orders: own };
}

/** Where the run's members wait for slots. */
function lanesOf({ environments, verified }: CrewWish['source']): ReadonlySet<MemberLane> {
  return new Set([...[...environments].map(laneOf), ...(verified > 0 ? (['verify'] as const) : [])]);
}

/** Those in which nobody has a slot. */
export function lanesWithout(workers: readonly Present[], lanes: Iterable<MemberLane>): MemberLane[] {
  return [...lanes].filter((lane) => !workers.some((one) => (one.slots[lane] ?? 0) > 0));
}
