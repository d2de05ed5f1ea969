// Who decides about starts: this process alone, or all processes on the engine through Redis. Both by the same bounds,
// which follow from the engine.

import { EnginePermits, type PermitBounds } from '../../../shared/permits/engine-permits.ts';
import type { Redis } from '../../../shared/redis/client.ts';
import type { EngineFacts, SandboxDriver } from '../../../shared/sandbox.ts';
import { localArbiter, StartGate } from './start-gate.ts';

/** An engine starts no more a second when more start at once: they only take longer. */
const STARTS = { least: 2, most: 16 };
/** Of the engine's memory; the rest is its own, the page cache's and everybody else's. */
const MEMORY_SHARE = 0.8;
const POLL_MS = 40;

export function boundsFor(facts: EngineFacts): PermitBounds {
  return {
    startsAtOnce: Math.max(STARTS.least, Math.min(STARTS.most, facts.cpus)),
    memoryMb: Math.floor(facts.memoryMb * MEMORY_SHARE),
  };
}

/** For boxes of this process alone, where there is no Redis: the `rollout` command, a gateway. */
export async function localGate(driver: SandboxDriver): Promise<StartGate> {
  return new StartGate(localArbiter(boundsFor(await driver.engine())));
}

/** `owner`: incarnation of the process. */
export async function fleetGate(redis: Redis, driver: SandboxDriver, owner: string): Promise<StartGate> {
  const facts = await driver.engine();
  const bounds = boundsFor(facts);
  const permits = new EnginePermits(redis, facts.id, owner, bounds);
  return new StartGate({
    bounds,
    pollMs: POLL_MS,
    claim: (held, wantMb) => permits.claim(held, wantMb),
    leave: () => permits.leave(),
  });
}
