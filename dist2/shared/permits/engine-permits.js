// Leave to start boxes on one engine, shared by all processes that use it through one Redis: how many start at once, and
// how much memory all boxes together may take. What a process holds is leased and told anew with every call; a process that
// is dead holds nothing once its lease has ended.
import { loadScript } from '../redis/script.js';
const FOLDER = new URL('.', import.meta.url);
const SCRIPTS = {
    claim: loadScript(FOLDER, 'claim', { allowOom: true }),
    leave: loadScript(FOLDER, 'leave', { allowOom: true }),
};
const TIMES = { leaseMs: 20_000, waitMs: 1_500 };
export class EnginePermits {
    redis;
    key;
    owner;
    bounds;
    times;
    /** `owner`: incarnation of the process. */
    constructor(redis, engine, owner, bounds, times = {}) {
        this.redis = redis;
        this.key = `farm:{engine:${engine}}`;
        this.owner = owner;
        this.bounds = bounds;
        this.times = { ...TIMES, ...times };
    }
    /** Says what this process holds; with `wantMb` asks for one start more. */
    async claim(held, wantMb) {
        const { bounds, times } = this;
        const told = [this.owner, held.starting, held.memoryMb, times.leaseMs];
        const asked = [bounds.startsAtOnce, bounds.memoryMb, wantMb ?? 0, times.waitMs];
        const answer = (await SCRIPTS.claim.call(this.redis, this.key, [...told, ...asked]));
        return { granted: answer[0] === 1, pressed: answer[1] === 1 };
    }
    async leave() {
        await SCRIPTS.leave.call(this.redis, this.key, [this.owner]);
    }
}
