// The fleet's window: how many members of all runs of a realm may be queued or at work at once, about one and a half
// times the live slots of each lane, dealt to the runs in turns (deal.lua). A run's `in_flight` is a cap and no right: the
// rest of a sweep stays out of the queue, and a small run that comes later gets its share with the next places that
// fall free. What a run holds is leased: with its driver gone it is everybody's again.
import { MEMBER_LANES } from '../lane.js';
import { runKey } from '../ledger/script.js';
import { present } from '../presence.js';
import { openRedis } from '../redis/connect.js';
import { loadScript } from '../redis/script.js';
const DEAL = loadScript(new URL('.', import.meta.url), 'deal', { allowOom: true });
/** Above the slots, so that a worker that is done with one finds the next already queued. */
const AHEAD = 1.5;
/** A light job carries several members: two such jobs wait, at least. */
const LIGHT_AHEAD = 16;
/** Before any worker is there: enough for the first one to begin with. */
const FIRST = 8;
/** A driver asks ten times a second. */
const LEASE_MS = 5_000;
const LOOK_MS = 1_000;
/** Nobody is there yet: whoever comes should not wait for our next look. */
const LOOK_AGAIN_MS = 100;
/** Members that may be queued or at work in a lane of so many live slots. */
export function windowOf(lane, slots) {
    if (slots === 0)
        return FIRST;
    return Math.max(Math.ceil(AHEAD * slots), lane === 'light' ? slots + LIGHT_AHEAD : 0);
}
export class Fleet {
    redis;
    place;
    realm;
    leaseMs;
    listeners = new Map();
    ears = null;
    slots = noSlots();
    lookAt = Number.NEGATIVE_INFINITY;
    constructor(redis, place, realm, leaseMs = LEASE_MS) {
        this.redis = redis;
        this.place = place;
        this.realm = realm;
        this.leaseMs = leaseMs;
    }
    /** How many members of each lane the run may put into the queue now. */
    async deal(run, asks) {
        await this.look();
        const args = asks.flatMap(({ lane, out, want }) => [
            lane,
            windowOf(lane, this.slots[lane]),
            out,
            Math.max(0, want),
        ]);
        const dealt = (await DEAL.call(this.redis, fleetKey(this.realm), [run, this.leaseMs, ...args]));
        return { rollout: 0, light: 0, verify: 0, ...Object.fromEntries(asks.map(({ lane }, i) => [lane, dealt[i] ?? 0])) };
    }
    /** Calls `wake` when places of the run have fallen free (`out` are left), or were dealt to it. */
    async listen(run, wake) {
        if (this.ears === null) {
            this.ears = openRedis(this.place);
            this.ears.on('message', (channel, text) => {
                const [lane = '', out] = text.split(' ');
                this.listeners.get(channel)?.(lane, out === undefined ? null : Number(out));
            });
        }
        const channel = `${runKey(run)}:wake`;
        this.listeners.set(channel, wake);
        await this.ears.subscribe(channel);
        return () => {
            this.listeners.delete(channel);
            void this.ears?.unsubscribe(channel).catch(() => { });
        };
    }
    close() {
        this.ears?.disconnect();
        this.ears = null;
    }
    async look() {
        const now = performance.now();
        const any = MEMBER_LANES.some((lane) => this.slots[lane] > 0);
        if (now - this.lookAt < (any ? LOOK_MS : LOOK_AGAIN_MS))
            return;
        this.lookAt = now;
        this.slots = await liveSlots(this.redis, this.realm);
    }
}
export async function liveSlots(redis, realm) {
    const slots = noSlots();
    for (const worker of await present(redis)) {
        if (worker.realm !== realm)
            continue;
        for (const lane of Object.keys(slots))
            slots[lane] += worker.slots[lane] ?? 0;
    }
    return slots;
}
/** Runs that have members in a lane's window or wait for a place in it. */
export async function runsInLane(redis, realm, lane) {
    const names = await redis.hkeys(`${fleetKey(realm)}:${lane}`);
    return names.filter((name) => name !== '#turn').sort();
}
export function fleetKey(realm) {
    return `farm:{fleet ${realm}}`;
}
function noSlots() {
    return { interactive: 0, rollout: 0, light: 0, verify: 0 };
}
