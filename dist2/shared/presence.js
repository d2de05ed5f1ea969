// Which workers are there: each says so every few seconds, with its role, realm and slots. Lets `run` find workers of the
// house instead of bringing its own, and lets a sweeper tell whose containers have no owner any more. Time is Redis's;
// a worker of this machine whose process is gone is not there, whatever it said last.
import { readSlots, writeSlots } from './lane.js';
import { isKnownDead, processIdentity } from './process-identity.js';
import { clockOf } from './redis/nodes.js';
const KEY = 'farm:workers';
const EVERY_MS = 3_000;
const GOOD_FOR_MS = 15_000;
/** Who was not heard of for so long is forgotten. */
const FORGOTTEN_MS = 60_000;
/** Also on a full Redis: a worker that cannot say that it is there would be taken for a dead one. */
const SAY = `#!lua flags=allow-oom
local t = redis.call('TIME')
return redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1], ARGV[2])`;
/** Announces until `stop`; a failure to announce is only a worker that is not seen. */
export async function announce(redis, me) {
    const text = `${me.role} ${me.realm} ${me.worker} ${processIdentity()} ${writeSlots(me.slots)}`;
    const say = async () => {
        await redis.call('EVAL', SAY, '1', KEY, String(GOOD_FOR_MS), text);
    };
    await say();
    const timer = setInterval(() => void say().catch(() => { }), EVERY_MS);
    return {
        stop: async () => {
            clearInterval(timer);
            await redis.zrem(KEY, text).catch(() => { });
        },
    };
}
export function present(redis) {
    return heardOf(redis, 0);
}
/** Workers that may still be there, though they have not said so for a while: a Redis that was away heard nobody. */
export function perhapsPresent(redis) {
    return heardOf(redis, FORGOTTEN_MS);
}
async function heardOf(redis, graceMs) {
    const now = await clockOf(redis, KEY);
    await redis.zremrangebyscore(KEY, '-inf', now - FORGOTTEN_MS);
    const texts = await redis.zrangebyscore(KEY, now - graceMs, '+inf');
    return texts.flatMap((text) => {
        const [role, realm, worker, identity, slots] = text.split(' ');
        return isKnownDead(identity ?? '') ? [] : [{ role, realm, worker, slots: readSlots(slots ?? '') }];
    });
}
