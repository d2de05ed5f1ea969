// Who works on a run: workers of the shared realm where they can and may play all of it, wherever they are, else workers
// of its own. Only who brings rollout workers needs an engine here; what images a run's boxes have is for its workers to fix.

import type { Config } from '../shared/config.ts';
import { missingError } from '../shared/errors.ts';
import type { Slots } from '../shared/lane.ts';
import { keyChanged, type RunKey } from '../shared/ledger/key-of-run.ts';
import { holding, lanesOf, lanesWithout, otherKeys, shortKey } from '../shared/manning.ts';
import { presentIn } from '../shared/presence.ts';
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
  /** Why workers that have the slots are not the run's. */
  warnings: readonly string[];
}

export interface CrewWish {
  run: string;
  sandbox: Pick<RunSpec['sandbox'], 'image' | 'runtime'>;
  source: Pick<TaskSource, 'environments' | 'verified'>;
  key: RunKey;
  /** Its workers are its own, whoever else is there. */
  alone: boolean;
  /** Rollout slots of workers of its own. */
  slots: number | Slots | null;
  /** The command goes away: all has to be there. */
  detach: boolean;
}

/**
 * Throws FarmError: exit 3 if the run has nobody to play it and cannot bring them, exit 2 if those that it could bring
 * would not have the key that it was opened with.
 */
export async function findCrew(config: Config, redis: Redis, wish: CrewWish): Promise<Crew> {
  const { run, sandbox, source, alone, slots, detach } = wish;
  const key = wish.key.wanted;
  const shared = alone ? [] : await presentIn(redis, SHARED_REALM);
  const lanes = lanesOf(source);
  const unmanned = lanesWithout(holding(shared, key), lanes);
  if (unmanned.length > 0 && key !== null && key !== wish.key.held) throw keyChanged(run, wish.key);
  const misfit = misfitOf(otherKeys(shared, unmanned, key), key);
  const collected = shared.some((one) => one.role === 'collect');
  if (detach && !(unmanned.length === 0 && collected)) {
    const missing = [...unmanned.map((lane) => `with ${lane} slots`), ...(collected ? [] : ['that collects'])];
    throw missingError(
      'no_workers',
      `--detach needs workers that are there already, and there is none ${missing.join(', and none ')}${misfit === null ? '' : `: ${misfit}`}`,
      `start ./farm up, or ./farm worker ROLE, on the same Redis${holdingOf(key)}`,
    );
  }
  const own = ordersFor({ realm: privateRealm(run), run, rollout: slots, verify: null, verifies: source.verified > 0 });
  // Its collector is for this run alone, and not to be taken for one of the shared realm.
  if (unmanned.length === 0)
    return {
      realm: SHARED_REALM,
      orders: collected ? [] : own.filter((order) => order.role === 'collect'),
      warnings: [],
    };
  if (lanes.has('rollout'))
    await requireSandbox(config, sandbox.image, sandbox.runtime, alone ? [] : unmanned, holdingOf(key, misfit));
  const warnings = misfit === null ? [] : [`${misfit}: the run brings its own`];
  return { realm: privateRealm(run), orders: own, warnings };
}

/** What is to be said where workers have the slots, and only their key does not fit. */
function misfitOf(held: readonly string[], key: string | null): string | null {
  if (held.length === 0) return null;
  return `shared workers hold another AmberTrace key (${held.join(', ')}) than this command (${shortKey(key)})`;
}

function holdingOf(key: string | null, misfit: string | null = null): string {
  const why = misfit === null ? '' : ` (${misfit})`;
  return key === null ? '' : ` and with this command’s AMBERTRACE_API_KEY${why}`;
}
