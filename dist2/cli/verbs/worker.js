// `farm worker ROLE`: one role of the shared realm in this process, to be scaled by starting more.
import { randomBytes } from 'node:crypto';
import { Adopter } from '../../producer/adopter.js';
import { readConfig } from '../../shared/config.js';
import { inputError } from '../../shared/errors.js';
import { writeSlots } from '../../shared/lane.js';
import { openLog } from '../../shared/log.js';
import { SHARED_REALM } from '../../shared/realm.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { tellSilence } from '../../shared/redis/silence.js';
import { Interrupts } from '../interrupts.js';
import { laneSlots, verifySlots } from '../roles.js';
import { startRole } from '../start-role.js';
export async function worker(args) {
    const role = ['rollout', 'verify', 'collect'].find((r) => r === args.role);
    if (role === undefined)
        throw inputError('role', `worker ${args.role}: rollout, verify and collect are roles`);
    const config = readConfig();
    const log = openLog(config, role);
    const interrupts = new Interrupts();
    const name = `${role}-${process.pid}-${randomBytes(4).toString('hex')}`;
    const slots = slotsOf(role, args.concurrency);
    const started = await startRole(config, { role, realm: SHARED_REALM, slots, run: null, worker: name }, log);
    // The collector's process drives runs that nobody drives: so that a detached run has an owner where there is no `up`.
    const adopter = role === 'collect' ? await adopt(config, log) : null;
    log.info({ worker: name, slots: writeSlots(slots) }, 'ready');
    await new Promise((resolve) => interrupts.onFirst(resolve));
    log.info('draining');
    await adopter?.close();
    // A worker's grace is its episodes' own deadline: members at work end by themselves.
    const second = new Promise((resolve) => interrupts.second.addEventListener('abort', () => resolve('second'), { once: true }));
    if ((await Promise.race([started.drain(), second])) === 'second')
        await started.stop();
    return interrupts.exitCode;
}
function slotsOf(role, want) {
    if (role === 'rollout')
        return laneSlots(want, SHARED_REALM);
    if (want !== null && typeof want !== 'number')
        throw inputError('slots', `worker ${role} has one kind of slots`, '--concurrency with a whole number');
    return role === 'verify' ? verifySlots(want) : {};
}
async function adopt(config, log) {
    const { redis, place } = await connectRedis(config, { patient: true });
    const adopter = new Adopter({ redis, place, realm: SHARED_REALM, log });
    const silence = tellSilence(redis, place.address, log.child({ part: 'adopter' }));
    return {
        close: async () => {
            await adopter.drain();
            silence.stop();
            redis.disconnect();
        },
    };
}
