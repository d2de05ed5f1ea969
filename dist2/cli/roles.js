// How many workers fit the machine: one rollout worker per engine is the unit of scale, its slots follow the cores. Beside
// those for sandboxed episodes it has slots for light ones, and some that only interactive calls may take.
import { availableParallelism } from 'node:os';
import { SHARED_REALM } from '../shared/realm.js';
const VERIFY_SLOTS = 64;
/** A light episode opens no box: it costs a little CPU, or waits for its policy. */
const LIGHT_SLOTS = 32;
const LIGHT_PER_ROLLOUT = 4;
export function ordersFor(want) {
    const { realm, run } = want;
    const orders = [{ role: 'rollout', realm, run, slots: laneSlots(want.rollout, realm) }];
    if (want.verifies)
        orders.push({ role: 'verify', realm, run, slots: verifySlots(want.verify) });
    orders.push({ role: 'collect', realm, run, slots: {} });
    return orders;
}
export function rolloutSlots() {
    return Math.max(2, availableParallelism() * 2);
}
/** `want`: how many sandboxed episodes at once, or how many of each lane. */
export function laneSlots(want, realm) {
    const given = typeof want === 'number' ? { rollout: want } : (want ?? {});
    const rollout = given.rollout ?? rolloutSlots();
    const light = given.light ?? Math.max(LIGHT_SLOTS, LIGHT_PER_ROLLOUT * rollout);
    // Nobody calls into a run's own workers.
    const interactive = realm === SHARED_REALM ? (given.interactive ?? Math.max(1, Math.ceil(rollout / 4))) : 0;
    return { interactive, rollout, light };
}
export function verifySlots(want) {
    return { verify: want ?? VERIFY_SLOTS };
}
