// The library's scripted episodes, played by the product's environments: the same file byte for byte, digests,
// fingerprint and what `show` prints of it, and a clean replay. Code-task and terminal have names and a config only
// here, so there the rest of the file is compared.

import { shownLines } from '../../src/cli/verbs/show.ts';
import { isMap, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { canonicalText, fingerprint, parseTrajectory } from '../../src/shared/trajectory.ts';
import { makeEnvironment } from '../../src/workers/rollout/environments/registry.ts';
import type { Episode } from '../../src/workers/rollout/episode.ts';
import { replayTrajectory } from '../../src/workers/rollout/replay.ts';
import { EpisodeBoxes } from './episode-context.ts';
import { playCase, printsEnvironment, unnamed } from './play-episode.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, judge, notRun, type Runner, type Verdict } from './verdict.ts';

const NAMED_HERE = ['code-task', 'terminal'];

export function trajectoryRunner(): Runner {
  const boxes = new EpisodeBoxes();
  return {
    async run(one) {
      if (printsEnvironment(one))
        return notRun('a command that asks for HOME or LANG: a box sets both, the library passes neither');
      return boxes.within(async (context) => {
        const episode = await playCase(one, context());
        if (one.out.has('raises')) return ofRaising(one, episode);
        if (episode.status !== 'completed') return differ(`the episode is ${episode.status}`);
        const wrong = differences(one, episode);
        if (wrong.length > 0) return differ(`another ${wrong.join(', ')}`);
        if (waited(one)) return judge(one, true, '');
        const report = await replayTrajectory(parseTrajectory(episode.bytes), (name, config) =>
          makeEnvironment(name, config, context()),
        );
        return judge(one, report.ok, `its replay: ${report.mismatches.join('; ')}`);
      });
    },
    close: () => boxes.close(),
  };
}

type Completed = Extract<Episode, { status: 'completed' }>;

function differences(one: VectorCase, episode: Completed): string[] {
  const reference = one.out.get('file_text') as string;
  const named = NAMED_HERE.includes(one.in.get('env') as string);
  const show = (one.out.get('cli_show') as ValueMap).get('stdout') as string;
  const same: [string, boolean][] = [
    ['number of steps', BigInt(episode.steps) === one.out.get('steps')],
    ['total reward', Object.is(episode.totalReward, one.out.get('total_reward'))],
    [
      'digest',
      sameAsReference(
        episode.trajectory.transitions.map((t) => t.digest),
        one.out.get('digests') as Value,
      ),
    ],
    ['file', named ? unnamed(episode.bytes) === unnamed(reference) : episode.bytes.toString() === reference],
    ['canonical text', named || canonicalText(episode.trajectory) === one.out.get('to_json')],
    ['fingerprint', named || fingerprint(episode.trajectory) === one.out.get('fingerprint')],
    ['show', named || `${shownLines(episode.trajectory).join('\n')}\n` === show],
  ];
  return same.filter(([, equal]) => !equal).map(([what]) => what);
}

/** Where the library raises we refuse the config, or record a miss with its error. */
function ofRaising(one: VectorCase, episode: Episode | { status: 'refused' }): Verdict {
  const raised = one.out.get('raises') as ValueMap;
  const where = raised.get('where');
  if (episode.status === 'refused') return judge(one, where === 'construct', 'the config is refused', ['broken-file']);
  if (where === 'construct') return differ(`the episode is ${episode.status}, the library refuses its config`);
  if (episode.status === 'no_result')
    return judge(
      one,
      false,
      `no result: ${episode.cause}`,
      where === 'reset' || where === 'rollout' ? ['nothing-raises'] : [],
    );
  const step = episode.trajectory.transitions[Number(raised.get('step') ?? 0)];
  const missed = typeof step?.reward === 'number' && step.reward < 0 && isMap(step.info) && step.info.has('error');
  return judge(one, false, 'a step without its error', missed ? ['nothing-raises'] : []);
}

/** Waiting for a timeout once is enough. */
function waited(one: VectorCase): boolean {
  const stdout = JSON.stringify(one.out.get('to_json') ?? '');
  return stdout.includes('timed out after');
}
