// `farm export RUN|DIR|FILE… --format F --out PATH`: recorded episodes as what trainers load. Reads the store alone, checks
// every hash on the way, and leaves nothing where something is wrong.

import { EXIT, inputError } from '../../shared/errors.ts';
import type { Value } from '../../shared/json/value.ts';
import { plainText, type TrainingRecord, trainingRecords } from '../../shared/training-record.ts';
import { parseTrajectory } from '../../shared/trajectory.ts';
import { unlessAborted } from '../../shared/within.ts';
import { type ExportedEpisode, FORMATS, type Format, openOutput } from '../export-formats.ts';
import { type CompletedMember, openRecording, type RecordedEpisode, type Recording } from '../recorded-episodes.ts';

export async function exportVerb(args: {
  targets: string[];
  format: string;
  out: string;
  json: boolean;
}): Promise<number> {
  const format = FORMATS.find((known) => known === args.format);
  if (format === undefined)
    throw inputError('format', `--format ${args.format} is not a format`, `allowed: ${FORMATS.join(', ')}`);
  const output = openOutput(format, args.out);
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
  const counts = { episodes: 0, records: 0 };
  try {
    for (const target of args.targets) {
      for await (const episode of unlessAbortedEach(ending.signal, exportedEpisodes(target, format))) {
        await output.add(episode);
        counts.episodes += 1;
        counts.records += episode.records.length;
      }
    }
    await output.finish();
  } catch (error) {
    output.abandon();
    if (ending.signal.aborted) return EXIT.interrupted;
    throw error;
  }
  process.stdout.write(
    args.json
      ? `${JSON.stringify({ out: args.out, format, ...counts })}\n`
      : `${args.out}: ${counts.episodes} episodes, ${counts.records} records\n`,
  );
  return EXIT.ok;
}

/** What hangs is not waited for: the command is about to end. */
async function* unlessAbortedEach<T>(signal: AbortSignal, items: AsyncGenerator<T>): AsyncGenerator<T> {
  for (;;) {
    const next = await unlessAborted(signal, items.next());
    if (next.done) return;
    yield next.value;
  }
}

async function* exportedEpisodes(target: string, format: Format): AsyncGenerator<ExportedEpisode> {
  const recording = await openRecording(target);
  try {
    const promptOf = recording.run === null ? null : await recording.prompts();
    for await (const episode of recording.episodes) {
      const isText = episode.of?.member.certificate.env === 'text' && format !== 'crucible';
      const prompt = promptOf && episode.of && isText ? await promptOf(episode.of.group.group) : null;
      yield await exported(recording, episode, prompt);
    }
  } finally {
    await recording.close();
  }
}

async function exported(
  { run }: Recording,
  { name, load, of }: RecordedEpisode,
  prompt: Value,
): Promise<ExportedEpisode> {
  const where = run === null ? name : `${run} ${name}`;
  const bytes = await load();
  const trajectory = parseTrajectory(bytes, where);
  let records = trainingRecords(trajectory);
  if (of) records = withPrompt(withWholeReward(records, of.member), of.member, prompt);
  const wrong = records.find((record) => !Number.isFinite(Number(record.reward)));
  if (wrong)
    throw inputError(
      'not_finite',
      `${where}: the reward of step ${wrong.step} is no finite number`,
      'replay tells more',
    );
  return { name: where, of, bytes, records };
}

/** What the verifier gave a member was earned by its last answer: the records of a member sum up to its reward. */
function withWholeReward(records: TrainingRecord[], member: CompletedMember): TrainingRecord[] {
  const verified = Object.keys(member.components).some((part) => part !== 'env');
  const last = records.at(-1);
  if (!verified || last === undefined) return records;
  const before = records.slice(0, -1).reduce((sum, record) => sum + Number(record.reward), 0);
  return [...records.slice(0, -1), { ...last, reward: member.reward - before }];
}

/** A text has no observation: what the policy saw is the task's prompt. */
function withPrompt(records: TrainingRecord[], member: CompletedMember, prompt: Value): TrainingRecord[] {
  if (member.certificate.env !== 'text') return records;
  const seen = plainText(prompt ?? '');
  return records.map((record) => ({ ...record, prompt: seen }));
}
