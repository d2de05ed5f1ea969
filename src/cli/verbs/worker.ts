// `farm worker ROLE`: one role of the shared realm in this process, to be scaled by starting more.

import { randomBytes } from 'node:crypto';
import { Adopter } from '../../producer/adopter.ts';
import { type Config, readConfig } from '../../shared/config.ts';
import { inputError } from '../../shared/errors.ts';
import { type Slots, writeSlots } from '../../shared/lane.ts';
import { type Log, openLog } from '../../shared/log.ts';
import type { RoleName } from '../../shared/presence.ts';
import { SHARED_REALM } from '../../shared/realm.ts';
import { connectRedis, locateRedis } from '../../shared/redis/connect.ts';
import { tellSilence } from '../../shared/redis/silence.ts';
import { Interrupts } from '../interrupts.ts';
import { laneSlots, verifySlots } from '../roles.ts';
import { startRole } from '../start-role.ts';
import { readHealthAddress, serveHealth } from '../worker-health.ts';

export interface WorkerArguments {
  role: string;
  concurrency: number | Slots | null;
  /** Where probes are answered; null: nowhere. */
  health: string | null;
}

export async function worker(args: WorkerArguments): Promise<number> {
  const role = (['rollout', 'verify', 'collect'] as const).find((r) => r === args.role);
  if (role === undefined) throw inputError('role', `worker ${args.role}: rollout, verify and collect are roles`);
  const config = readConfig();
  const log = openLog(config, role);
  const interrupts = new Interrupts();
  const name = `${role}-${process.pid}-${randomBytes(4).toString('hex')}`;
  const slots = slotsOf(role, args.concurrency);
  const probed = args.health === null ? null : readHealthAddress(args.health);
  const started = await startRole(config, { role, realm: SHARED_REALM, slots, run: null, worker: name }, log);
  // The collector's process drives runs that nobody drives: so that a detached run has an owner where there is no `up`.
  const adopter = role === 'collect' ? await adopt(config, log) : null;
  const place = probed && (await locateRedis(config));
  const health = probed && place && (await serveHealth(probed, { role, worker: name, config, place }));
  log.info({ worker: name, slots: writeSlots(slots), ...(health ? { health: health.url } : {}) }, 'ready');
  await new Promise<void>((resolve) => interrupts.onFirst(resolve));
  log.info('draining');
  health?.draining();
  await adopter?.close();
  // A worker's grace is its episodes' own deadline: members at work end by themselves.
  const second = new Promise<'second'>((resolve) =>
    interrupts.second.addEventListener('abort', () => resolve('second'), { once: true }),
  );
  if ((await Promise.race([started.drain(), second])) === 'second') await started.stop();
  await health?.close();
  return interrupts.exitCode;
}

function slotsOf(role: RoleName, want: number | Slots | null): Slots {
  if (role === 'rollout') return laneSlots(want, SHARED_REALM);
  if (want !== null && typeof want !== 'number')
    throw inputError('slots', `worker ${role} has one kind of slots`, '--concurrency with a whole number');
  return role === 'verify' ? verifySlots(want) : {};
}

async function adopt(config: Config, log: Log): Promise<{ close(): Promise<void> }> {
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
