// `farm score --env NAME --env-config JSON --input ITEMS.jsonl`: completions scored in sandboxes, each as one single-step
// episode in a box of its own; one line an item, in input order. Rollout workers that are there do it, else this process.
import { Episodes } from '../../gateway/episodes.js';
import { outcomeRow } from '../../gateway/outcome.js';
import { OwnBoxes } from '../../gateway/own-boxes.js';
import { readConfig } from '../../shared/config.js';
import { EXIT, inputError } from '../../shared/errors.js';
import { dumpJson } from '../../shared/json/json.js';
import { isMap } from '../../shared/json/value.js';
import { DEFAULT_LIMITS } from '../../shared/sandbox.js';
import { ENVIRONMENT_CONFIGS } from '../../shared/spec/environment-config.js';
import { createDockerDriver } from '../../workers/rollout/sandbox/docker.js';
import { createOwnPool, ownWorker } from '../../workers/rollout/sandbox/own-pool.js';
import { interactivePlace } from '../interactive-place.js';
import { jsonArgument } from '../json-argument.js';
import { requireSandbox } from '../needs.js';
import { rolloutSlots } from '../roles.js';
import { print, ScoreItems } from '../score-items.js';
/** A command waits as long as its episodes take; each step has its own bound. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
export async function scoreEnv(args) {
    const kind = ENVIRONMENT_CONFIGS.get(args.env);
    if (!kind || args.env === 'text') {
        const known = [...ENVIRONMENT_CONFIGS.keys()].filter((name) => name !== 'text').join(', ');
        throw inputError('unknown_environment', `--env ${args.env} is not an environment that scores by itself`, `known: ${known}`);
    }
    const given = jsonArgument('--env-config', args.envConfig);
    const problems = kind.check(given);
    if (problems.length > 0 || !isMap(given)) {
        throw inputError('config_invalid', `--env-config: ${problems.map((p) => `${p.path}: ${p.message}`).join('; ')}`);
    }
    const input = await ScoreItems.read(args.input);
    const config = readConfig();
    const place = await interactivePlace(config);
    if (kind.usesSandbox && place === null)
        await requireSandbox(config, DEFAULT_LIMITS.image);
    const stop = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.once(signal, () => stop.abort());
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
            if (stop.signal.aborted)
                return EXIT.interrupted;
            const rows = outcomes.map((outcome, i) => `${dumpJson(outcomeRow(start + i, outcome))}\n`);
            await print(rows.join(''));
        }
        return EXIT.ok;
    }
    finally {
        await episodes.close();
        place?.close();
    }
}
