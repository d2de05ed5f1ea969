// Which fault an event of the schedule is on this scene: its kind's, on the target that its draw points to.
import { RunLedger } from '../../shared/ledger/run-ledger.js';
import { ClockFault } from './faults/clock-fault.js';
import { EngineFault } from './faults/engine-fault.js';
import { EverythingKilled } from './faults/everything-killed.js';
import { Felled } from './faults/felled.js';
import { RedisFault } from './faults/redis-fault.js';
import { RedisFull } from './faults/redis-full.js';
import { Stopped } from './faults/stopped.js';
import { StoreFault } from './faults/store-fault.js';
import { VerifierFault } from './faults/verifier-fault.js';
import { CableFault, WireFault } from './faults/wire.js';
const HOUR_S = 3_600;
const SLOW_MS = 60;
const ROLES = ['rollout', 'verify', 'collect', 'gateway'];
/** For what `scene.lacks` nothing. */
export async function faultOf(scene, { kind, target }) {
    const { troupe, links, disk, verifier } = scene;
    const one = (list) => list[target % list.length];
    switch (kind) {
        case 'killed':
            return new Felled(scene, [one(troupe.names)], null, true);
        case 'driver-killed':
            return new Felled(scene, [(await driverOf(scene)) ?? one(troupe.names)], null, true);
        case 'role-gone': {
            const role = one(ROLES);
            return new Felled(scene, troupe.of(role), goneRole(role), false);
        }
        case 'everything-killed':
            return new EverythingKilled(scene);
        case 'stopped':
            return new Stopped(scene, one(troupe.names));
        case 'cut-off': {
            const name = one(troupe.names);
            return new WireFault(`${name} cut off from Redis`, [links.get(name)].filter((l) => l !== undefined), {
                kind: 'silent',
            });
        }
        case 'rack-cut':
            return new CableFault(scene.rack);
        case 'clock-back':
        case 'clock-ahead': {
            const [name, clock] = one([...scene.clocks]);
            return new ClockFault(name, clock, kind === 'clock-back' ? -HOUR_S : HOUR_S);
        }
        case 'redis-killed':
            return new RedisFault(scene, 'killed');
        case 'redis-stopped':
            return new RedisFault(scene, 'stopped');
        case 'redis-slow':
            return new WireFault('Redis slow', [...links.values()], { kind: 'slow', ms: SLOW_MS });
        case 'redis-full':
            return new RedisFull(scene);
        case 'engine-hung':
        case 'engine-gone':
            if (scene.engine === null)
                throw new Error('no engine to hang');
            return new EngineFault(scene.engine, kind === 'engine-hung' ? 'silent' : 'gone');
        case 'store-full':
            return new StoreFault(disk, 'full');
        case 'store-readonly':
            return new StoreFault(disk, 'readonly');
        case 'store-frozen':
            return new StoreFault(disk, 'frozen');
        case 'verifier-down':
            return new VerifierFault(verifier, 'down');
        case 'verifier-rate-limited':
            return new VerifierFault(verifier, 'rate_limit');
        case 'verifier-garbage':
            return new VerifierFault(verifier, 'garbage');
    }
}
/** Of the process that holds the run's driver lease; null if none of ours does. */
async function driverOf(scene) {
    const identity = await new RunLedger(scene.ledger.admin, scene.run).field('driver').catch(() => null);
    return identity === null ? null : scene.troupe.nameOf(Number(identity.split('.')[1]));
}
/** Nobody of a role is there: whoever looks is told so. A gateway serves trainers, and no member waits for one. */
function goneRole(role) {
    if (role === 'gateway')
        return null;
    const says = new RegExp(`no ${role} worker`);
    return { status: says, top: says, withinMs: 25_000 };
}
