// `farm up`: every role of the shared realm in one place, the gateway among them, until it is stopped. It drives runs
// that nobody drives: those that `run --detach` or the gateway submitted, and those whose driver died.
import { Adopter } from '../../producer/adopter.js';
import { readConfig } from '../../shared/config.js';
import { RunLedger } from '../../shared/ledger/run-ledger.js';
import { openLog } from '../../shared/log.js';
import { SHARED_REALM } from '../../shared/realm.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { tellSilence } from '../../shared/redis/silence.js';
import { GatewayChild } from '../gateway-child.js';
import { Interrupts } from '../interrupts.js';
import { ordersFor } from '../roles.js';
import { DRAIN_MS, Supervisor } from '../supervisor.js';
export async function up(args) {
    const config = readConfig();
    const log = openLog(config, 'up');
    const interrupts = new Interrupts();
    const { redis, place } = await connectRedis(config, { patient: true });
    const gateway = new GatewayChild({ port: args.port, configs: args.configs }, log);
    const bound = await gateway.start();
    if (bound !== 0) {
        redis.disconnect();
        return bound;
    }
    const adopter = new Adopter({ redis, place, realm: SHARED_REALM, log });
    const silence = tellSilence(redis, place.address, log);
    const supervisor = new Supervisor({
        orders: ordersFor({ realm: SHARED_REALM, run: null, rollout: args.rollout, verify: args.verify, verifies: true }),
        environment: {},
        log,
        lines: (text) => process.stderr.write(text),
        onDeath: async (worker, signature) => {
            for (const run of await adopter.runs())
                await new RunLedger(redis, run).bury(worker, signature, 3);
        },
    });
    process.stderr.write(`farm: up on ${place.address}; Ctrl-C drains, twice stops\n`);
    await new Promise((resolve) => interrupts.onFirst(resolve));
    await adopter.drain();
    await Promise.all([supervisor.drain(interrupts.second), gateway.drain(DRAIN_MS, interrupts.second)]);
    silence.stop();
    redis.disconnect();
    return interrupts.exitCode;
}
