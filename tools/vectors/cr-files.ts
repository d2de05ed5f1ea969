// Trajectory files, sound, old, broken and tampered with: what reading, `show` and `replay` say of them. Whatever the
// library finds we find, with its lines; what it lets pass and we do not is a rule's.

import { readTrajectory, shownLines } from '../../src/cli/verbs/show.ts';
import { FarmError } from '../../src/shared/errors.ts';
import { isMap, pyEqual, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import {
  canonicalText,
  fingerprint,
  integrityMismatches,
  parseTrajectory,
  type Trajectory,
} from '../../src/shared/trajectory.ts';
import { makeEnvironment } from '../../src/workers/rollout/environments/registry.ts';
import { type ReplayReport, replayTrajectory } from '../../src/workers/rollout/replay.ts';
import { EpisodeBoxes } from './episode-context.ts';
import { RULES, type RuleName } from './rules.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, EQUAL, judge, notRun, type Runner, type Verdict } from './verdict.ts';

const FILE_RULES: RuleName[] = ['key-given-twice', 'no-extra-keys', 'broken-file'];
const REPLAY_RULES: RuleName[] = [
  'final-observation',
  'no-empty-episode',
  'seed-is-an-integer',
  'unrecorded',
  'exact-total',
];

export function fileRunner(): Runner {
  const boxes = new EpisodeBoxes();
  return {
    async run(one) {
      if (one.in.has('argv')) return commandLine(one);
      const read = orRefused(() => parseTrajectory(contentOf(one), 'episode.json'));
      const reading = ofReading(one, read);
      if (reading.status === 'differ' || read === 'refused') return reading;
      return worse(reading, await ofReplay(one, read, boxes));
    },
    close: () => boxes.close(),
  };
}

function contentOf(one: VectorCase): string | Buffer {
  const hex = one.in.get('file_hex');
  return typeof hex === 'string' ? Buffer.from(hex, 'hex') : (one.in.get('file_text') as string);
}

function orRefused<T>(work: () => T): T | 'refused' {
  try {
    return work();
  } catch (error) {
    if (error instanceof FarmError && error.exit === 2 && !error.message.includes('\n')) return 'refused';
    throw error;
  }
}

function said(one: VectorCase, name: string): { exit: Value; stdout: string; traceback: boolean } {
  const value = (one.out.get(name) ?? new Map()) as ValueMap;
  return {
    exit: value.get('exit') ?? null,
    stdout: (value.get('stdout') ?? '') as string,
    traceback: value.has('traceback'),
  };
}

function ofReading(one: VectorCase, read: Trajectory | 'refused'): Verdict {
  const show = said(one, 'cli_show');
  const raises = one.out.has('raises') || one.out.has('load_raises');
  if (read === 'refused') return judge(one, raises && show.exit === 2n, 'the file is refused', FILE_RULES);
  if (raises) return differ('read, and the library raises');
  const loaded = one.out.get('loaded');
  if (isMap(loaded) && !sameAsReference(canonicalText(read), loaded.get('to_json') as Value))
    return differ('another content');
  const print = isMap(loaded) ? loaded.get('fingerprint') : one.out.get('fingerprint');
  if (print !== undefined && fingerprint(read) !== print) return differ('another fingerprint');
  if (show.traceback) return judge(one, false, 'shown', FILE_RULES);
  const lines = `${shownLines(read).join('\n')}\n`;
  const exit = integrityMismatches(read).length === 0 ? 0n : 1n;
  return judge(one, lines === show.stdout && exit === show.exit, `show: ${lines}`, ['exact-total']);
}

async function ofReplay(one: VectorCase, read: Trajectory, boxes: EpisodeBoxes): Promise<Verdict> {
  const theirs = said(one, 'cli_replay');
  if (theirs.exit === null) return EQUAL;
  const report = await boxes.within(async (context) => {
    try {
      return await replayTrajectory(read, (name, config) => makeEnvironment(name, config, context()));
    } catch (error) {
      if (error instanceof FarmError && error.exit === 2) return 'refused' as const;
      throw error;
    }
  });
  if (report === 'refused')
    return judge(one, theirs.exit === 2n, 'its environment cannot be built', ['unrecorded', 'broken-file']);
  if (theirs.traceback) return judge(one, false, 'replayed', ['broken-file']);
  if (theirs.exit === 2n) return differ('replayed, and the library cannot');
  if (theirs.exit === 0n) return report.ok ? EQUAL : ofAccepted(one, read, report, boxes);
  if (report.ok) return judge(one, false, 'replay finds nothing', report.unrecorded.length > 0 ? ['unrecorded'] : []);
  const missing = linesOf(theirs.stdout).filter((line) => !report.mismatches.includes(line));
  // Without a seed that can begin an episode nothing is played, and no more is found.
  const rules: RuleName[] = [
    ...(report.unrecorded.length > 0 ? (['unrecorded'] as const) : []),
    ...(read.seed === null || typeof read.seed === 'object' ? (['seed-is-an-integer'] as const) : []),
  ];
  return judge(one, missing.length === 0, `replay does not say: ${missing.join('; ')}`, rules);
}

/** The library lets it pass: a rule for what the file lacks, or a difference that is only one of type. */
async function ofAccepted(
  one: VectorCase,
  read: Trajectory,
  report: ReplayReport,
  boxes: EpisodeBoxes,
): Promise<Verdict> {
  const verdict = judge(one, false, `replay: ${report.mismatches.join('; ')}`, REPLAY_RULES);
  if (verdict.status === 'stricter') return verdict;
  const lenient = await boxes.within((context) =>
    equalButForTypes(read, (name, config) => makeEnvironment(name, config, context())),
  );
  return lenient && RULES['types-count'].covers(one) ? { status: 'stricter', rule: 'types-count' } : verdict;
}

/** Whether the episode reproduces under Python's `==`, where 1 is 1.0 and true. */
async function equalButForTypes(read: Trajectory, make: Parameters<typeof replayTrajectory>[1]): Promise<boolean> {
  const { envId, envConfig } = read;
  if (typeof envId !== 'string' || !isMap(envConfig)) return false;
  const environment = make(envId, envConfig);
  let observation = await environment.reset(read.seed);
  let same = pyEqual(environment.config(), envConfig) && pyEqual(observation, read.initialObservation);
  let total = 0;
  for (const recorded of read.transitions) {
    same &&= pyEqual(observation, recorded.observation);
    const result = await environment.step(recorded.action);
    same &&= pyEqual(result.reward, recorded.reward) && pyEqual(result.done, recorded.done);
    same &&= pyEqual(result.info, recorded.info) && pyEqual(environment.digest(), recorded.digest);
    observation = result.observation;
    total += result.reward;
  }
  const ended = read.finalObservation === undefined || pyEqual(observation, read.finalObservation);
  return same && ended && pyEqual(total, read.totalReward);
}

function linesOf(stdout: string): string[] {
  return stdout.split('\n').flatMap((line) => (line.startsWith('  - ') ? [line.slice(4)] : []));
}

/** A file operand alone can be asked of ours; options and usage texts are each command line's own. */
function commandLine(one: VectorCase): Verdict {
  const argv = (one.in.get('argv') as string[]).filter((word) => word !== '--');
  const [verb, name] = argv;
  if (
    argv.length !== 2 ||
    (verb !== 'show' && verb !== 'replay') ||
    name === undefined ||
    argv.includes('--help') ||
    argv.includes('-h') ||
    argv.includes('--json')
  )
    return notRun("usage, help and options of the library's own command line");
  const files = one.in.get('files') as ValueMap;
  const content = files.get(name);
  const theirs = said(one, 'cli');
  if (typeof content === 'string' && verb === 'replay') return notRun('replays are the other cases');
  const read = orRefused(() =>
    typeof content === 'string' ? parseTrajectory(content, name) : readTrajectory(`/nonexistent/${name}`),
  );
  if (read === 'refused') return judge(one, theirs.exit === 2n, 'the file is refused', FILE_RULES);
  return judge(one, `${shownLines(read).join('\n')}\n` === theirs.stdout, 'show', ['exact-total']);
}

function worse(a: Verdict, b: Verdict): Verdict {
  return a.status === 'equal' || b.status === 'differ' ? b : a;
}
