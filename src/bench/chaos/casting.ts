// Which fault an event of the schedule is on this scene: its kind's, on the target that its draw points to.

import { LEASE_MS } from '../../shared/ledger/member-ledger.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import type { Fault } from './fault.ts';
import { ClockFault } from './faults/clock-fault.ts';
import { EngineFault } from './faults/engine-fault.ts';
import { EverythingKilled } from './faults/everything-killed.ts';
import { Felled } from './faults/felled.ts';
import { RedisFault } from './faults/redis-fault.ts';
import { RedisForgets } from './faults/redis-forgets.ts';
import { RedisFull } from './faults/redis-full.ts';
import { S3Fault } from './faults/s3-fault.ts';
import { Stopped } from './faults/stopped.ts';
import { StoreFault } from './faults/store-fault.ts';
import { StoreSlow } from './faults/store-slow.ts';
import { VerifierFault } from './faults/verifier-fault.ts';
import { CableFault, WireFault } from './faults/wire.ts';
import type { Rack } from './rack.ts';
import { RACKED, type Scene } from './scene.ts';
import type { ChaosEvent } from './schedule.ts';
import type { Visible } from './sight.ts';
import type { RoleKind } from './troupe.ts';
import { unheard } from './unheard.ts';

const S3_STATES = {
  's3-500': [{ kind: 'answer', status: 500, code: 'InternalError' }, true],
  's3-503': [{ kind: 'answer', status: 503, code: 'SlowDown' }, true],
  's3-slow': [{ kind: 'slow', ms: 1_500 }, false],
  's3-silent': [{ kind: 'silent' }, true],
  's3-gone': ['killed', true],
  's3-cut': [{ kind: 'cut' }, true],
  's3-deaf': [{ kind: 'deaf' }, true],
  's3-lies': [{ kind: 'lie' }, false],
} as const;
const HOUR_S = 3_600;
const SLOW_MS = 60;
/** What is away for longer than this has to be seen. */
const SEEN_MS = 1_500;
const SLOW_REDIS: Visible = {
  status: /Redis takes \d+ ms to answer/,
  top: /Redis takes \d+ ms to answer/,
  log: /Redis answers slowly/,
  withinMs: 25_000,
};
const ROLES: readonly RoleKind[] = ['rollout', 'verify', 'collect', 'gateway'];

/** For what `scene.lacks` nothing. */
export async function faultOf(scene: Scene, { kind, target, holdMs }: ChaosEvent): Promise<Fault> {
  const { troupe, links, disk, verifier } = scene;
  const one = <T>(list: readonly T[]): T => list[target % list.length] as T;
  const beyondLease = holdMs > LEASE_MS;
  switch (kind) {
    case 'killed': {
      const name = one(troupe.names);
      // Another draw out of the same number.
      const workerOnly = Math.floor(target / troupe.names.length) % 2 === 1 && troupe.childrenOf(name).length > 0;
      return new Felled(scene, [name], { workerOnly, beyondLease });
    }
    case 'driver-killed':
      return new Felled(scene, [(await driverOf(scene)) ?? one(troupe.names)], { beyondLease });
    case 'role-gone': {
      const role = one(ROLES);
      return new Felled(scene, troupe.of(role), { visible: goneRole(role), beyondLease });
    }
    case 'everything-killed':
      return new EverythingKilled(scene, holdMs > SEEN_MS);
    case 'power-lost':
      return new EverythingKilled(scene, false, true);
    case 'stopped':
      return new Stopped(scene, one(troupe.names));
    case 'cut-off': {
      const name = one(troupe.names);
      return new WireFault(
        `${name} cut off from Redis`,
        [links.get(name)].filter((l) => l !== undefined),
        { kind: 'silent' },
        () => unheard(scene, [troupe.pidOf(name)]),
      );
    }
    case 'rack-cut':
      return new CableFault(scene.rack as Rack, () => unheard(scene, [troupe.pidOf(RACKED)]));
    case 'clock-back':
    case 'clock-ahead': {
      const [name, clock] = one([...scene.clocks]);
      return new ClockFault(name, clock, kind === 'clock-back' ? -HOUR_S : HOUR_S);
    }
    case 'redis-killed':
      return new RedisFault(scene, 'killed', holdMs > SEEN_MS);
    case 'redis-stopped':
      return new RedisFault(scene, 'stopped', true);
    case 'redis-slow':
      return new WireFault('Redis slow', [...links.values()], { kind: 'slow', ms: SLOW_MS }, async () => SLOW_REDIS);
    case 'redis-forgets':
      return new RedisForgets(scene, target);
    case 'redis-full':
      return new RedisFull(scene);
    case 'engine-hung':
    case 'engine-gone':
      if (scene.engine === null) throw new Error('no engine to hang');
      return new EngineFault(scene.engine, kind === 'engine-hung' ? 'silent' : 'gone');
    case 'store-full':
      return new StoreFault(disk, 'full');
    case 'store-readonly':
      return new StoreFault(disk, 'readonly');
    case 'store-frozen':
      return new StoreFault(disk, 'frozen');
    case 'store-slow':
      return new StoreSlow(disk);
    case 's3-500':
    case 's3-503':
    case 's3-slow':
    case 's3-silent':
    case 's3-gone':
    case 's3-cut':
    case 's3-deaf':
    case 's3-lies': {
      if (scene.s3 === null) throw new Error('no S3 to misbehave');
      const [state, outage] = S3_STATES[kind];
      return new S3Fault(scene.s3, state, outage);
    }
    case 'verifier-down':
      return new VerifierFault(verifier, 'down');
    case 'verifier-rate-limited':
      return new VerifierFault(verifier, 'rate_limit');
    case 'verifier-garbage':
      return new VerifierFault(verifier, 'garbage');
  }
}

/** Of the process that holds the run's driver lease; null if none of ours does. */
async function driverOf(scene: Scene): Promise<string | null> {
  const identity = await new RunLedger(scene.ledger.admin, scene.run).field('driver').catch(() => null);
  return identity === null ? null : scene.troupe.nameOf(Number(identity.split('.')[1]));
}

/** Nobody of a role is there: whoever looks is told so. A gateway serves trainers, and no member waits for one. */
function goneRole(role: RoleKind): Visible | null {
  if (role === 'gateway') return null;
  const says = new RegExp(`no ${role} worker`);
  return { status: says, top: says, withinMs: 25_000 };
}
