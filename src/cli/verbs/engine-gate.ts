// `farm engine-gate`: lets workers have boxes of a Docker engine without having the engine (docs/deploy.md). Where it
// listens is on stdout when it can be used.

import { chmod, rm } from 'node:fs/promises';
import { readConfig } from '../../shared/config.ts';
import { inputError, messageOf, missingError } from '../../shared/errors.ts';
import { openLog } from '../../shared/log.ts';
import { EngineGate } from '../../workers/rollout/engine-gate/gate.ts';
import { bringImages } from '../../workers/rollout/engine-gate/images.ts';
import { engineAddress } from '../../workers/rollout/sandbox/engine-address.ts';
import { Interrupts } from '../interrupts.ts';

/** Whoever shares the folder with it and is of its group: not everybody on the machine. */
const SOCKET_MODE = 0o660;

export async function engineGate(args: { listen: string; images: string | null }): Promise<number> {
  const config = readConfig();
  const log = openLog(config, 'engine-gate');
  const at = engineAddress(args.listen);
  if ('protocol' in at && at.protocol === 'https')
    throw inputError('listen', `--listen ${args.listen}: a gate speaks no TLS`, 'unix:///path or tcp://host:port');
  if (args.images !== null) await bringImages(config.dockerHost, args.images, log);
  // Until here there is nothing to bring to an end: a signal ends the process.
  const interrupts = new Interrupts();
  const gate = new EngineGate({ dockerHost: config.dockerHost, log });
  try {
    if ('socketPath' in at) {
      // Of a gate that was killed.
      await rm(at.socketPath, { force: true });
      await gate.listen({ path: at.socketPath });
      await chmod(at.socketPath, SOCKET_MODE);
    } else await gate.listen({ host: at.host, port: at.port });
  } catch (error) {
    throw missingError(
      'port_unusable',
      `cannot listen on ${args.listen}: ${messageOf(error)}`,
      'choose another --listen',
    );
  }
  process.stdout.write(`${'socketPath' in at ? `unix://${at.socketPath}` : `tcp://${at.host}:${gate.port}`}\n`);
  log.info({ listen: args.listen }, 'ready');
  await new Promise<void>((resolve) => interrupts.onFirst(resolve));
  await gate.close();
  if ('socketPath' in at) await rm(at.socketPath, { force: true });
  return interrupts.exitCode;
}
