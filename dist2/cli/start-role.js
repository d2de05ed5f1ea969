// Puts a role together from its parts: the one place where a worker meets its Redis, its engine and its store.
import { perhapsPresent } from '../shared/presence.js';
import { connectRedis } from '../shared/redis/connect.js';
import { tellSilence } from '../shared/redis/silence.js';
import { startCollectWorker } from '../workers/collect/worker.js';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.js';
import { fleetGate } from '../workers/rollout/sandbox/gates.js';
import { createPool } from '../workers/rollout/sandbox/pool.js';
import { startRolloutWorker } from '../workers/rollout/worker.js';
import { startVerifyWorker } from '../workers/verify/worker.js';
export async function startRole(config, seat, log) {
    const { redis, place, farmId } = await connectRedis(config, { patient: true });
    const context = {
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
    const closing = (end) => async () => {
        await end();
        silence.stop();
        redis.disconnect();
    };
    return { drain: closing(role.drain), stop: closing(role.stop) };
}
/** How many boxes start at once is for all workers of the engine to agree on, not for the driver. */
function pooled({ config, redis, worker }) {
    const driver = createDockerDriver({ dockerHost: config.dockerHost, startsAtOnce: Number.POSITIVE_INFINITY });
    return createPool(driver, () => fleetGate(redis, driver, worker));
}
function start(context, seat) {
    switch (seat.role) {
        case 'rollout':
            return startRolloutWorker(context, pooled(context), 
            // Containers end themselves when their worker is silent: the sweeper can wait until it is surely gone.
            async () => new Set((await perhapsPresent(context.redis)).map((p) => p.worker)));
        case 'verify':
            return startVerifyWorker(context);
        case 'collect':
            return startCollectWorker(context, seat.run);
    }
}
