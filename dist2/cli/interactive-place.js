// The interactive lane as a command finds it: of the Redis that REDIS_URL names, or of an embedded one that is there
// already. None is started for it.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { InteractiveDesk } from '../gateway/interactive-desk.js';
import { SHARED_REALM } from '../shared/realm.js';
import { connectRedis } from '../shared/redis/connect.js';
import { ask, embeddedPaths } from '../shared/redis/embedded.js';
const REDIS_MS = 2_000;
/** Null where no rollout worker serves it. Throws FarmError (exit 3) if the Redis of REDIS_URL cannot be used. */
export async function interactivePlace(config) {
    if (config.redisUrl === null) {
        const answer = existsSync(path.join(config.dataDir, 'redis'))
            ? await ask(embeddedPaths(config).socket, 'PING', REDIS_MS)
            : null;
        if (!answer?.startsWith('+PONG'))
            return null;
    }
    const { redis, place } = await connectRedis(config);
    const lane = new InteractiveDesk({ redis, place, realm: SHARED_REALM, elsewhere: true });
    await lane.look();
    if (lane.workers)
        return { lane, close: () => redis.disconnect() };
    redis.disconnect();
    return null;
}
