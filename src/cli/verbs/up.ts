// `farm up`: every role of the shared realm in one place, until it is stopped. It drives runs that nobody drives: those
// that `run --detach` submitted, and those whose driver died.

import { Adopter } from '../../producer/adopter.ts';
import { readConfig } from '../../shared/config.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { openLog } from '../../shared/log.ts';
import { SHARED_REALM } from '../../shared/queue.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { Interrupts } from '../interrupts.ts';
import { ordersFor } from '../roles.ts';
import { Supervisor } from '../supervisor.ts';

export async function up(args: { rollout: number | null; verify: number | null }): Promise<number> {
  const config = readConfig();
  const log = openLog(config, 'up');
  const interrupts = new Interrupts();
  const { redis, place } = await connectRedis(config);
  const adopter = new Adopter({ redis, place, realm: SHARED_REALM, log });
  const supervisor = new Supervisor({
    orders: ordersFor({ realm: SHARED_REALM, run: null, rollout: args.rollout, verify: args.verify, verifies: true }),
    environment: {},
    log,
    onDeath: async (worker, signature) => {
      for (const run of await adopter.runs()) await new RunLedger(redis, run).bury(worker, signature, 3);
    },
  });
  process.stderr.write(`farm: up on ${place.address}; Ctrl-C drains, twice stops\n`);
  await new Promise<void>((resolve) => interrupts.onFirst(resolve));
  await adopter.drain();
  await supervisor.drain(interrupts.second);
  redis.disconnect();
  return interrupts.exitCode;
}
