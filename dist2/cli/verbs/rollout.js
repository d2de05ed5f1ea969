// `farm rollout`: one episode, here and now, in a real sandbox; the trajectory goes to a file.
import { writeFileSync } from 'node:fs';
import { readConfig } from '../../shared/config.js';
import { EXIT, FarmError, inputError, messageOf } from '../../shared/errors.js';
import { isMap } from '../../shared/json/value.js';
import { ENVIRONMENT_CONFIGS } from '../../shared/spec/environment-config.js';
import { runEpisode } from '../../workers/rollout/episode.js';
import { scriptedPolicy } from '../../workers/rollout/policies/scripted.js';
import { EpisodeBoxes } from '../episode-box.js';
import { jsonArgument } from '../json-argument.js';
export async function rollout(args) {
    const kind = ENVIRONMENT_CONFIGS.get(args.env);
    if (!kind)
        throw inputError('unknown_environment', `--env ${args.env} is not an environment`, `known: ${[...ENVIRONMENT_CONFIGS.keys()].join(', ')}`);
    if (args.sandbox !== 'docker' && args.sandbox !== 'subprocess')
        throw inputError('sandbox_kind', `--sandbox ${args.sandbox} is not a kind`, 'docker or subprocess');
    const config = jsonArgument('--config', args.config);
    const problems = kind.check(config);
    if (problems.length > 0 || !isMap(config))
        throw inputError('config_invalid', `--config: ${problems.map((p) => `${p.path}: ${p.message}`).join('; ')}`);
    const actions = jsonArgument('--actions', args.actions);
    if (!Array.isArray(actions) || actions.length === 0)
        throw inputError('actions_invalid', '--actions: a list with at least one action is wanted');
    const controller = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.once(signal, () => controller.abort(new Error(`interrupted by ${signal}`)));
    const boxes = new EpisodeBoxes(readConfig(), args.sandbox);
    try {
        const episode = await runEpisode({
            environment: boxes.environment(args.env, kind.resolve(config), controller.signal),
            seed: args.seed,
            policy: scriptedPolicy(actions),
            maxSteps: args.maxSteps ?? actions.length,
            signal: controller.signal,
            knownSignature: null,
        });
        if (episode.status === 'no_result')
            throw new FarmError(episode.cause, `no result: ${episode.cause}: ${episode.detail}`, { exit: EXIT.missing });
        try {
            writeFileSync(args.out, episode.bytes);
        }
        catch (error) {
            throw inputError('out_unwritable', `--out ${args.out} cannot be written: ${messageOf(error)}`);
        }
        process.stdout.write(`${JSON.stringify({ out: args.out, steps: episode.steps, reward: episode.totalReward, diagnostics: episode.diagnostics })}\n`);
        return EXIT.ok;
    }
    catch (error) {
        if (controller.signal.aborted)
            return EXIT.interrupted;
        throw error;
    }
    finally {
        await boxes.close();
    }
}
