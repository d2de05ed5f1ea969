// The process of one role. Its parent tells it to drain or to stop; a parent that is gone means stop. A terminal's
// Ctrl-C reaches it too and is not meant for it.

import { z } from 'zod';
import { readConfig } from '../shared/config.ts';
import { messageOf } from '../shared/errors.ts';
import { LANES } from '../shared/lane.ts';
import { openLog } from '../shared/log.ts';
import { startRole } from './start-role.ts';

const orderSchema = z.strictObject({
  role: z.enum(['rollout', 'verify', 'collect']),
  realm: z.string(),
  slots: z.partialRecord(z.enum(LANES), z.int().nonnegative()),
  run: z.string().nullable(),
  worker: z.string(),
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
const order = orderSchema.parse(JSON.parse(process.argv[2] ?? ''));
const config = readConfig();
const log = openLog(config, order.role);
// A parent that was killed leaves a broken pipe behind: nothing to die of before the end.
process.stderr.on('error', () => {});
process.on('unhandledRejection', (error) => log.error({ error: messageOf(error) }, 'unhandled'));

/** Less than the parent's own patience, and than a container's. */
const STOP_MS = 4_000;
let ending = false;
const end = async (how: 'drain' | 'stop'): Promise<void> => {
  if (ending && how === 'drain') return;
  ending = true;
  // Whatever hangs (a Redis that is away above all): a stop is over in seconds. Containers end themselves without us.
  if (how === 'stop') setTimeout(() => process.exit(0), STOP_MS);
  const role = await starting;
  await role[how]();
  process.exit(0);
};
process.on('message', (message) => void end(message === 'drain' ? 'drain' : 'stop'));
process.on('disconnect', () => void end('stop'));

const starting = startRole(config, order, log);
void starting.then(
  () => process.send?.('ready'),
  () => {},
);
starting.catch((error: unknown) => {
  log.error({ error: messageOf(error) }, 'the role did not start');
  process.exit(1);
});
