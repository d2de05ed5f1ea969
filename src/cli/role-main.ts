// The process of one role. Its parent tells it to drain or to stop; a parent that is gone means stop. A terminal's
// Ctrl-C reaches it too and is not meant for it.

import { z } from 'zod';
import { readConfig } from '../shared/config.ts';
import { messageOf } from '../shared/errors.ts';
import { openLog } from '../shared/log.ts';
import { startRole } from './start-role.ts';

const orderSchema = z.strictObject({
  role: z.enum(['rollout', 'verify', 'collect']),
  realm: z.string(),
  concurrency: z.int().positive(),
  run: z.string().nullable(),
  worker: z.string(),
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
const order = orderSchema.parse(JSON.parse(process.argv[2] ?? ''));
const config = readConfig();
const log = openLog(config, order.role);
process.on('unhandledRejection', (error) => log.error({ error: messageOf(error) }, 'unhandled'));

let ending = false;
const end = async (how: 'drain' | 'stop'): Promise<void> => {
  if (ending && how === 'drain') return;
  ending = true;
  const role = await starting;
  await role[how]();
  process.exit(0);
};
process.on('message', (message) => void end(message === 'drain' ? 'drain' : 'stop'));
process.on('disconnect', () => void end('stop'));

const starting = startRole(config, order, log);
starting.catch((error: unknown) => {
  log.error({ error: messageOf(error) }, 'the role did not start');
  process.exit(1);
});
