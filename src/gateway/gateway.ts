// Puts the gateway together: bound at once, its parts (Redis, the verifier's side, boxes, runs) when they are there.
// Whatever belongs to the command line (how results and finished runs are read) is given to it.

import { availableParallelism } from 'node:os';
import { Adopter } from '../producer/adopter.ts';
import type { Config } from '../shared/config.ts';
import { messageOf } from '../shared/errors.ts';
import type { RunStatus } from '../shared/ledger/run-status.ts';
import type { Log } from '../shared/log.ts';
import { MemberQueue } from '../shared/queue.ts';
import { SHARED_REALM } from '../shared/realm.ts';
import type { Redis } from '../shared/redis/client.ts';
import { openRedis, type RedisPlace } from '../shared/redis/connect.ts';
import type { SandboxDriver } from '../shared/sandbox.ts';
import { ownWorker } from '../workers/rollout/sandbox/own-pool.ts';
import type { UpstreamState } from '../workers/verify/fleet/upstream.ts';
import { Askers, type OpenAsker } from './asker.ts';
import { Bodies } from './body.ts';
import { PACE, type Pace } from './body-memory.ts';
import type { ScoreConfigs } from './configs.ts';
import { GatewayDesk } from './desk.ts';
import { Episodes } from './episodes.ts';
import { FigureReader } from './figures.ts';
import { Following, type OpenReader } from './follow.ts';
import { RewardCall } from './get-reward.ts';
import { InteractiveDesk } from './interactive-desk.ts';
import { OwnBoxes } from './own-boxes.ts';
import { END_TOKENS } from './query-cut.ts';
import { missingRoles, RunDesk } from './run-desk.ts';
import { RunsCall } from './runs-call.ts';
import { ScoreCall } from './score-call.ts';
import { capacityOf, type GatewayServer, type Readiness } from './server.ts';

export interface GatewayParts {
  config: Config;
  configs: ScoreConfigs;
  place: RedisPlace;
  log: Log;
  openAsker: OpenAsker;
  upstreams: (redis: Redis) => Promise<UpstreamState[]>;
  /** Boxes of this process, for samples that no rollout worker is there to take; null: it has none. */
  openDriver: (() => SandboxDriver) | null;
  openReader: (redis: Redis) => OpenReader;
  finished: (run: string) => Promise<RunStatus | null>;
  /** Whether this process drives runs that nobody drives. */
  adopts: boolean;
  /** Whether it is ready only with workers of the shared realm: `farm up` brings them, for `serve` alone others do. */
  needsWorkers: boolean;
  limits?: Partial<GatewayLimits>;
}

export interface GatewayLimits {
  bodyBytes: number;
  /** Of `/get_reward`: a sample or a few. */
  rewardBodyBytes: number;
  bodyIdleMs: number;
  pace: Pace;
  /** Of `/v1/score`. */
  requests: number;
  samples: number;
  /** Of bodies, for each class of calls. */
  bytes: number;
  /** Samples of `/get_reward` that are asked at once; the others wait. */
  rewardSamples: number;
  rewardAnswerMs: number;
  heartbeatMs: number;
  boxes: number;
  endTokens: readonly string[];
}

const LIMITS: GatewayLimits = {
  bodyBytes: 64 * 1024 * 1024,
  rewardBodyBytes: 4 * 1024 * 1024,
  bodyIdleMs: 30_000,
  pace: PACE,
  requests: 4_096,
  samples: 100_000,
  // What is made of a body takes up to ten times its size.
  bytes: 128 * 1024 * 1024,
  rewardSamples: 16_384,
  rewardAnswerMs: 165_000,
  heartbeatMs: 10_000,
  boxes: Math.max(2, availableParallelism() * 2),
  endTokens: END_TOKENS,
};
const BODY_WHOLE_MS = 600_000;
const REDIS_MS = 5_000;
const READY_MS = 1_000;

export interface Opened {
  close(): Promise<void>;
}

/** Gives the server its desk. `close` ends what was opened here. */
export async function openGateway(server: GatewayServer, parts: GatewayParts): Promise<Opened> {
  const { config, configs, place, log } = parts;
  const limits = { ...LIMITS, ...parts.limits };
  const redis = openRedis(place, { commandTimeout: REDIS_MS });
  const queue = new MemberQueue(place, SHARED_REALM, { commandTimeout: REDIS_MS });
  const askers = new Askers(parts.openAsker);
  const { openDriver } = parts;
  const episodes = new Episodes({
    lane: new InteractiveDesk({ redis, place, realm: SHARED_REALM, elsewhere: openDriver !== null }),
    own: openDriver && new OwnBoxes({ openDriver, slots: limits.boxes, worker: ownWorker('gateway') }),
  });
  const figures = new FigureReader({ redis, queues: () => queue.counts(), upstreams: () => parts.upstreams(redis) });
  const following = new Following(parts.openReader(redis), limits.heartbeatMs);
  const bounds = {
    maxBytes: limits.bodyBytes,
    idleMs: limits.bodyIdleMs,
    wholeMs: BODY_WHOLE_MS,
    pace: limits.pace,
  };
  const rewardBounds = { ...bounds, maxBytes: Math.min(limits.bodyBytes, limits.rewardBodyBytes) };
  const scoring = capacityOf(limits);
  const rewarding = capacityOf({ samples: limits.rewardSamples, bytes: limits.bytes });
  const { metrics } = server;
  const bodies = new Bodies(bounds, scoring.memory);
  const runDesk = new RunDesk({
    redis,
    config,
    log,
    baseUrls: configs.all.map((one) => one.verifier.baseUrl),
    finished: parts.finished,
  });
  const gauge = (name: string, help: string, values: [string, number][]) => ({
    name,
    help,
    kind: 'gauge' as const,
    values: values.map(([call, value]) => ({ labels: { call }, value })),
  });
  server.open(
    new GatewayDesk({
      score: new ScoreCall({ configs, askers, episodes, metrics, bodies, ...scoring }),
      reward: new RewardCall({
        configs,
        askers,
        metrics,
        bodies: new Bodies(rewardBounds, rewarding.memory),
        log,
        samples: rewarding.samples,
        endTokens: limits.endTokens,
        answerMs: limits.rewardAnswerMs,
      }),
      runs: new RunsCall({ desk: runDesk, figures, bodies }),
      following,
      figures,
      metrics,
      gauges: () => [
        gauge('farm_gateway_samples_inside', 'Samples that are being scored.', [
          ['score', scoring.samples.inside],
          ['get_reward', rewarding.samples.inside],
        ]),
        gauge(
          'farm_gateway_samples_waiting',
          'Samples that wait for their turn: requests of get_reward, samples of an environment.',
          [
            ['get_reward', rewarding.samples.waiting],
            ['score', episodes.waiting],
          ],
        ),
        gauge('farm_gateway_body_bytes', 'Bytes of requests in memory.', [
          ['score', scoring.memory.inside],
          ['get_reward', rewarding.memory.inside],
        ]),
      ],
      readiness: () => readinessOf(redis, parts),
    }),
  );
  const adopter = parts.adopts ? new Adopter({ redis: openRedis(place), place, realm: SHARED_REALM, log }) : null;
  return {
    close: async () => {
      await adopter?.drain();
      await Promise.all([askers.close(), episodes.close()]);
      await queue.close().catch(() => {});
      redis.disconnect();
    },
  };
}

async function readinessOf(redis: Redis, { place, config, needsWorkers }: GatewayParts): Promise<Readiness> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer')), READY_MS);
    });
    const roles = await Promise.race([missingRoles(redis, config.ambertraceApiKey !== null), late]);
    const without = roles.map((role) => `there is no ${role} worker: runs are refused`);
    return needsWorkers ? { missing: without, without: [] } : { missing: [], without };
  } catch (error) {
    return { missing: [`Redis at ${place.address} does not answer (${messageOf(error)})`], without: [] };
  } finally {
    clearTimeout(timer);
  }
}
