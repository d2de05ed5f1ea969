// `farm serve`: the gateway alone. The base URL on stdout means that it is bound; requests are held until it is ready.
// As a child of `farm up` it is told to drain or to stop by its parent, and a terminal's Ctrl-C is not meant for it.

import { readConfigs, type ScoreConfigs } from '../../gateway/configs.ts';
import { type Opened, openGateway } from '../../gateway/gateway.ts';
import { Keys } from '../../gateway/keys.ts';
import { GatewayServer, refuseOpen } from '../../gateway/server.ts';
import { type Config, readConfig } from '../../shared/config.ts';
import { EXIT, inputError, missingError } from '../../shared/errors.ts';
import { openLog } from '../../shared/log.ts';
import { connectRedis, openRedis } from '../../shared/redis/connect.ts';
import { tellSilence } from '../../shared/redis/silence.ts';
import { createDockerDriver } from '../../workers/rollout/sandbox/docker.ts';
import { createOwnPool } from '../../workers/rollout/sandbox/own-pool.ts';
import { FleetAsker } from '../../workers/verify/fleet/asker.ts';
import { readUpstreams } from '../../workers/verify/fleet/upstream.ts';
import { Interrupts } from '../interrupts.ts';
import { openResults } from '../results-reader.ts';
import { finishedStatus } from '../stored-run.ts';

export interface ServeArguments {
  host: string;
  port: number;
  configs: readonly string[];
  /** Instead of the usual tokens that end a turn. */
  endTokens: readonly string[];
}

/** Five tries of OpenRLHF's at 30 s each end before its 180 s; the command line's word is 180 s. */
const GRACE_MS = 180_000;
/** Short enough that a query that hangs is set apart from its batch within OpenRLHF's patience. */
const CALL_MS = 30_000;
const REDIS_MS = 5_000;

export async function serve(args: ServeArguments): Promise<number> {
  const config = readConfig();
  const keys = new Keys(config.farmApiKey);
  const refused = refuseOpen(args.host, keys);
  if (refused !== null) throw inputError('key_needed', refused, 'set FARM_API_KEY, or leave --host out');
  const configs = await configsOf(args.configs, config);
  const log = openLog(config, 'gateway');
  const ending = endingOf();
  const server = await GatewayServer.bind({ host: args.host, port: args.port, keys, log });
  let opened: Opened | null = null;
  try {
    process.stdout.write(`${server.url}\n`);
    process.send?.('bound');
    const opening = open(server, configs, config, args, log);
    // Whoever ends it while it still waits for Redis: those whose requests are held are told, and it goes.
    if ((await Promise.race([opening, ending.first])) === undefined) {
      await server.drain(0, AbortSignal.abort());
      return ending.exitCode();
    }
    opened = await opening;
    process.stderr.write(
      `farm: gateway at ${server.url}${keys.open ? ' (this machine only: FARM_API_KEY is not set)' : ''}\n`,
    );
    await ending.first;
    log.info('draining');
  } catch (error) {
    await server.drain(0, AbortSignal.abort());
    throw error;
  }
  await server.drain(GRACE_MS, ending.second);
  await opened.close();
  return ending.exitCode();
}

async function configsOf(given: readonly string[], config: Config): Promise<ScoreConfigs> {
  const { configs, warnings } = await readConfigs(given, config);
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  if (configs.all.length > 0 && config.ambertraceApiKey === null)
    throw missingError(
      'key_missing',
      'AMBERTRACE_API_KEY is not set',
      'set it to a key of the platform; for the stand-in any that begins with at_ will do',
    );
  return configs;
}

async function open(
  server: GatewayServer,
  configs: ScoreConfigs,
  config: Config,
  args: ServeArguments,
  log: ReturnType<typeof openLog>,
): Promise<Opened> {
  const { redis, place } = await connectRedis(config);
  redis.disconnect();
  const asking = openRedis(place, { commandTimeout: REDIS_MS });
  const silence = tellSilence(asking, place.address, log);
  const openDriver = () => createOwnPool(createDockerDriver({ dockerHost: config.dockerHost }), 'gateway');
  const opened = await openGateway(server, {
    config,
    configs,
    place,
    log,
    openAsker: ({ baseUrl, platformId, maxConcurrency, requestsPerSecond }) =>
      new FleetAsker({
        redis: asking,
        place,
        upstream: { baseUrl, platformId, apiKey: config.ambertraceApiKey ?? '' },
        limits: { concurrency: maxConcurrency, requestsPerSecond, callTimeoutMs: CALL_MS },
        log,
      }),
    upstreams: readUpstreams,
    // `farm up` brings workers, which alone open boxes there.
    openDriver: process.send === undefined ? openDriver : null,
    openReader: (reading) => (run) => openResults(config, reading, run),
    finished: (run) => finishedStatus(config, run),
    adopts: process.send === undefined,
    needsWorkers: process.send !== undefined,
    ...(args.endTokens.length > 0 ? { limits: { endTokens: args.endTokens } } : {}),
  });
  return {
    close: async () => {
      await opened.close();
      silence.stop();
      asking.disconnect();
    },
  };
}

interface Ending {
  first: Promise<void>;
  /** Aborted when it must not take longer. */
  second: AbortSignal;
  exitCode(): number;
}

function endingOf(): Ending {
  if (process.send === undefined) {
    const interrupts = new Interrupts();
    return {
      first: new Promise((resolve) => interrupts.onFirst(resolve)),
      second: interrupts.second,
      exitCode: () => interrupts.exitCode,
    };
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  const stop = new AbortController();
  const first = new Promise<void>((resolve) => {
    process.on('message', (message) => {
      if (message !== 'drain') stop.abort();
      resolve();
    });
    // A parent that is gone means stop.
    const gone = (): void => {
      stop.abort();
      resolve();
    };
    process.on('disconnect', gone);
    if (!process.connected) gone();
  });
  return { first, second: stop.signal, exitCode: () => EXIT.ok };
}
