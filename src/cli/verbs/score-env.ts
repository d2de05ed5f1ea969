// `farm score --env NAME --env-config JSON --input ITEMS.jsonl`: completions scored in sandboxes, each as one single-step
// episode in a box of its own; one line an item, in input order. Rollout workers that are there do it, else this process.

import { Episodes } from '../../gateway/episodes.ts';
import { outcomeRow } from '../../gateway/outcome.ts';
import { OwnBoxes } from '../../gateway/own-boxes.ts';
import { readConfig } from '../../shared/config.ts';
import { EXIT, inputError } from '../../shared/errors.ts';
import { dumpJson } from '../../shared/json/json.ts';
import { isMap } from '../../shared/json/value.ts';
import { DEFAULT_LIMITS } from '../../shared/sandbox.ts';
import { ENVIRONMENT_CONFIGS } from '../../shared/spec/environment-config.ts';
import { createDockerDriver } from '../../workers/rollout/sandbox/docker.ts';
import { createOwnPool, ownWorker } from '../../workers/rollout/sandbox/own-pool.ts';
import { interactivePlace } from '../interactive-place.ts';
import { jsonArgument } from '../json-argument.ts';
import { requireSandbox } from '../needs.ts';
import { rolloutSlots } from '../roles.ts';
import { print, ScoreItems } from '../score-items.ts';

/** A command waits as long as its episodes take; each step has its own bound. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export async function scoreEnv(args: { env: string; envConfig: string; seed: bigint; input: string }): Promise<number> {
  const kind = ENVIRONMENT_CONFIGS.get(args.env);
  if (!kind || args.env === 'text') {
    const known = [...ENVIRONMENT_CONFIGS.keys()].filter((name) => name !== 'text').join(', ');
    throw inputError(
      'unknown_environment',
      `--env ${args.env} is not an environment that scores by itself`,
      `known: ${known}`,
    );
  }
  const given = jsonArgument('--env-config', args.envConfig);
  const problems = kind.check(given);
  if (problems.length > 0 || !isMap(given)) {
    throw inputError('config_invalid', `--env-config: ${problems.map((p) => `${p.path}: ${p.message}`).join('; ')}`);
  }
  const input = await ScoreItems.read(args.input);
  const config = readConfig();
  const place = await interactivePlace(config);
  if (kind.usesSandbox && place === null) await requireSandbox(config, DEFAULT_LIMITS.image, null, ['rollout']);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const openDriver = () => createOwnPool(createDockerDriver({ dockerHost: config.dockerHost }), 'gateway');
  const own = new OwnBoxes({ openDriver, slots: rolloutSlots(), worker: ownWorker('gateway') });
  const episodes = new Episodes({ lane: place?.lane ?? null, own });
  try {
    const environment = { name: args.env, config: kind.resolve(given), seed: args.seed };
    for (const { start, items } of input.slices()) {
      const completions = items.map((item) => item.completion);
      const outcomes = await episodes.score(environment, completions, {
        until: performance.now() + LONGEST_TIMER_MS,
        signal: stop.signal,
      });
      if (stop.signal.aborted) return EXIT.interrupted;
      const rows = outcomes.map((outcome, i) => `${dumpJson(outcomeRow(start + i, outcome))}\n`);
      await print(rows.join(''));
    }
    return EXIT.ok;
  } finally {
    await episodes.close();
    place?.close();
  }
}
