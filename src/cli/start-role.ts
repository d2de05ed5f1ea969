// Puts a role together from its parts: the one place where a worker meets its Redis, its engine and its store.

import type { Config } from '../shared/config.ts';
import type { Slots } from '../shared/lane.ts';
import type { Log } from '../shared/log.ts';
import { announceEngine } from '../shared/permits/engines.ts';
import { perhapsPresent, type RoleName } from '../shared/presence.ts';
import { connectRedis } from '../shared/redis/connect.ts';
import { tellSilence } from '../shared/redis/silence.ts';
import type { SandboxDriver } from '../shared/sandbox.ts';
import { startCollectWorker } from '../workers/collect/worker.ts';
import type { Role, RoleContext } from '../workers/role.ts';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.ts';
import { fleetGate } from '../workers/rollout/sandbox/gates.ts';
import { createPool } from '../workers/rollout/sandbox/pool.ts';
import { startRolloutWorker } from '../workers/rollout/worker.ts';
import { startVerifyWorker } from '../workers/verify/worker.ts';

export interface RoleSeat {
  role: RoleName;
  realm: string;
  slots: Slots;
  run: string | null;
  worker: string;
}

export async function startRole(config: Config, seat: RoleSeat, log: Log): Promise<Role> {
  const { redis, place, farmId } = await connectRedis(config, { patient: true });
  const context: RoleContext = {
    config,
    redis,
    place,
    farmId,
    realm: seat.realm,
    worker: seat.worker,
    slots: seat.slots,
    log,
  };
  const role = await start(context, seat);
  const silence = tellSilence(redis, place.address, log);
  const closing = (end: () => Promise<void>) => async (): Promise<void> => {
    await end();
    silence.stop();
    redis.disconnect();
  };
  return { drain: closing(role.drain), stop: closing(role.stop) };
}

async function rollout(context: RoleContext): Promise<Role> {
  const { redis, worker } = context;
  const driver = pooled(context);
  const engine = announceEngine(redis, worker, () => driver.engine());
  // Containers end themselves when their worker is silent: the sweeper can wait until it is surely gone.
  const alive = async (): Promise<Set<string>> => new Set((await perhapsPresent(redis)).map((p) => p.worker));
  const role = await startRolloutWorker(context, driver, alive);
  const ended = async (how: 'drain' | 'stop'): Promise<void> => {
    await role[how]();
    await engine.stop();
  };
  return { drain: () => ended('drain'), stop: () => ended('stop') };
}

/** How many boxes start at once is for all workers of the engine to agree on, not for the driver. */
function pooled({ config, redis, worker }: RoleContext): SandboxDriver {
  const driver = createDockerDriver({ dockerHost: config.dockerHost, startsAtOnce: Number.POSITIVE_INFINITY });
  return createPool(driver, () => fleetGate(redis, driver, worker));
}

function start(context: RoleContext, seat: RoleSeat): Promise<Role> {
  switch (seat.role) {
    case 'rollout':
      return rollout(context);
    case 'verify':
      return startVerifyWorker(context);
    case 'collect':
      return startCollectWorker(context, seat.run);
  }
}
