// `farm up`: every role of the shared realm in one place, the gateway among them, until it is stopped. It drives runs
// that nobody drives: those that `run --detach` or the gateway submitted, and those whose driver died.

import { Adopter } from '../../producer/adopter.ts';
import { readConfig } from '../../shared/config.ts';
import type { Slots } from '../../shared/lane.ts';
import { openLog } from '../../shared/log.ts';
import { SHARED_REALM } from '../../shared/realm.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { tellSilence } from '../../shared/redis/silence.ts';
import { GatewayChild } from '../gateway-child.ts';
import { Interrupts } from '../interrupts.ts';
import { ordersFor } from '../roles.ts';
import { buryIn, DRAIN_MS, Supervisor } from '../supervisor.ts';

export interface UpArguments {
  rollout: number | Slots | null;
  verify: number | null;
  /** Of the gateway; null: the usual one, if it is free. */
  port: number | null;
  configs: readonly string[];
}

export async function up(args: UpArguments): Promise<number> {
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
    onDeath: (worker, signature) => buryIn(redis, SHARED_REALM, worker, signature),
  });
  process.stderr.write(`farm: up on ${place.address}; Ctrl-C drains, twice stops\n`);
  await new Promise<void>((resolve) => interrupts.onFirst(resolve));
  await adopter.drain();
  await Promise.all([supervisor.drain(interrupts.second), gateway.drain(DRAIN_MS, interrupts.second)]);
  silence.stop();
  redis.disconnect();
  return interrupts.exitCode;
}
