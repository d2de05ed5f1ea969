// The formats of `farm export`. Each takes episodes one by one and writes beside its place; what is finished is moved
// there in one step, so that a dataset is whole or not there.

import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { sha256 } from '../shared/claim.ts';
import { inputError, messageOf } from '../shared/errors.ts';
import { str } from '../shared/python/text.ts';
import { promptLine, recordLine, type TrainingRecord } from '../shared/training-record.ts';
import { ParquetFile } from './parquet-file.ts';
import type { RecordedEpisode } from './recorded-episodes.ts';

export const FORMATS = ['records', 'prompts', 'crucible', 'parquet'] as const;
export type Format = (typeof FORMATS)[number];

/** An episode to be written, its records made. */
export interface ExportedEpisode {
  name: string;
  of: RecordedEpisode['of'];
  bytes: Buffer;
  records: TrainingRecord[];
}

export interface Output {
  add(episode: ExportedEpisode): Promise<void>;
  /** Everything stands at its place on return. */
  finish(): Promise<void>;
  /** Leaves nothing. */
  abandon(): void;
}

/** Throws FarmError (exit 2) where nothing can be written at `out`, before anything is read. */
export function openOutput(format: Format, out: string): Output {
  const draft = `${path.resolve(out)}.part-${process.pid}`;
  refuseTaken(format, out);
  try {
    if (format === 'crucible') return folderOf(out, draft);
    const make = format === 'parquet' ? parquetOf : format === 'prompts' ? linesOf(promptLine) : linesOf(recordLine);
    return make(out, draft);
  } catch (error) {
    throw inputError('out_unwritable', `--out ${out} cannot be written: ${messageOf(error)}`);
  }
}

/** A file may be replaced by a file; a folder that holds something is not ours to empty. */
function refuseTaken(format: Format, out: string): void {
  const there = statSync(out, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (format !== 'crucible' && there.isDirectory())
    throw inputError('out_taken', `--out ${out} is a folder, and ${format} is one file`, 'name a file');
  if (format === 'crucible' && !(there.isDirectory() && readdirSync(out).length === 0))
    throw inputError('out_taken', `--out ${out} is there already`, 'name a folder that is not there, or an empty one');
}

function linesOf(line: (record: TrainingRecord) => string): (out: string, draft: string) => Output {
  return (out, draft) => {
    const file = openSync(draft, 'w');
    return {
      async add({ records }) {
        writeSync(file, records.map(line).join(''));
      },
      async finish() {
        fsyncSync(file);
        closeSync(file);
        renameSync(draft, out);
      },
      abandon: () => rmSync(draft, { force: true }),
    };
  };
}

function parquetOf(out: string, draft: string): Output {
  const file = new ParquetFile(draft);
  return {
    async add({ name, of, bytes, records }) {
      const trajectory_sha256 = sha256(bytes);
      for (const record of records) {
        const seed = BigInt.asIntN(64, record.seed as bigint);
        if (typeof record.seed !== 'bigint' || seed !== record.seed)
          throw inputError('seed_range', `${name}: its seed has no place in 64 bits`, 'export it as records');
        await file.add({
          run: of?.group.run ?? null,
          group: of?.group.group ?? null,
          member: of?.member.member ?? null,
          task_id: of?.group.task_id ?? null,
          env_id: str(record.env_id),
          seed,
          step: record.step,
          prompt: str(record.prompt),
          completion: str(record.completion),
          reward: Number(record.reward),
          member_reward: of?.member.reward ?? null,
          advantage: of?.member.advantage ?? null,
          degenerate: of?.group.degenerate ?? null,
          policy_version: of?.group.policy_version ?? null,
          trajectory_sha256,
        });
      }
    },
    async finish() {
      await file.finish();
      renameSync(draft, out);
    },
    abandon: () => rmSync(draft, { force: true }),
  };
}

/** One trajectory a file, its bytes as they were recorded. */
function folderOf(out: string, draft: string): Output {
  mkdirSync(draft);
  const names = new Map<string, string>();
  return {
    async add({ name, of, bytes }) {
      const file = of
        ? `${of.group.run}-${String(of.group.group).padStart(6, '0')}-${String(of.member.member).padStart(4, '0')}.json`
        : path.basename(name);
      const other = names.get(file);
      if (other !== undefined)
        throw inputError('same_name', `${other} and ${name} would both be written as ${path.join(out, file)}`);
      names.set(file, name);
      writeFileSync(path.join(draft, file), bytes);
    },
    async finish() {
      renameSync(draft, out);
    },
    abandon: () => rmSync(draft, { recursive: true, force: true }),
  };
}
