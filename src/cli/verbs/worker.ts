// `farm worker ROLE`: one role of the shared realm, to be scaled by starting more. Where members are at work it is a child
// of this process.

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
import { buryIn, type RoleOrder, Supervisor } from '../supervisor.ts';
import { type Health, readHealthAddress, serveHealth } from '../worker-health.ts';

/** Answers probes for the workers that are named whenever it is asked; null: nobody wants to. */
type Probed = (workers: () => readonly string[]) => Promise<Health | null>;

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
  const slots = slotsOf(role, args.concurrency);
  const probed: Probed = async (workers) =>
    args.health === null
      ? null
      : await serveHealth(readHealthAddress(args.health), { role, workers, config, place: await locateRedis(config) });
  if (args.health !== null) readHealthAddress(args.health);
  if (role === 'collect') await collect(config, log, interrupts, probed);
  else await supervised(config, { role, realm: SHARED_REALM, slots, run: null }, log, interrupts, probed);
  return interrupts.exitCode;
}

/**
 * Members are at work in a process that one of them may kill: its parent sees how it died, tells the ledger, and starts
 * another. Without that a member could kill one worker after another, and no one would know of what.
 */
async function supervised(
  config: Config,
  order: RoleOrder,
  log: Log,
  interrupts: Interrupts,
  probed: Probed,
): Promise<void> {
  const { redis } = await connectRedis(config, { patient: true });
  const supervisor = new Supervisor({
    orders: [order],
    environment: {},
    log,
    lines: (text) => process.stderr.write(text),
    onReady: (worker) => log.info({ worker, slots: writeSlots(order.slots) }, 'ready'),
    onDeath: (worker, signature) => buryIn(redis, order.realm, worker, signature),
  });
  interrupts.onForce(() => supervisor.kill());
  const health = await probed(() => supervisor.workers);
  await new Promise<void>((resolve) => interrupts.onFirst(resolve));
  log.info('draining');
  // A worker's grace is its episodes' own deadline: members at work end by themselves.
  health?.draining();
  await supervisor.drain(interrupts.second, null);
  await health?.close();
  redis.disconnect();
}

/** Collects, and drives runs that nobody drives: so that a detached run has an owner where there is no `up`. */
async function collect(config: Config, log: Log, interrupts: Interrupts, probed: Probed): Promise<void> {
  const name = `collect-${process.pid}-${randomBytes(4).toString('hex')}`;
  const seat = { role: 'collect' as const, realm: SHARED_REALM, slots: {}, run: null, worker: name };
  const started = await startRole(config, seat, log);
  const adopter = await adopt(config, log);
  const health = await probed(() => [name]);
  log.info({ worker: name, slots: '' }, 'ready');
  await new Promise<void>((resolve) => interrupts.onFirst(resolve));
  log.info('draining');
  health?.draining();
  await adopter.close();
  const second = new Promise<'second'>((resolve) =>
    interrupts.second.addEventListener('abort', () => resolve('second'), { once: true }),
  );
  if ((await Promise.race([started.drain(), second])) === 'second') await started.stop();
  await health?.close();
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
