// Training records as a Parquet file: one row a step, with what the group says of its member. Written group of rows by
// group of rows, so that memory does not grow with the run. The package that knows the format is known here alone.

import { type ColumnSource, fileWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer';

/** Null where a file belongs to no run. Texts are UTF-8: a lone surrogate becomes U+FFFD there. */
export interface ParquetRow {
  run: string | null;
  group: number | null;
  member: number | null;
  task_id: string | null;
  env_id: string;
  seed: bigint;
  step: number;
  prompt: string;
  completion: string;
  /** Of this step. */
  reward: number;
  /** Of the whole member. */
  member_reward: number | null;
  advantage: number | null;
  degenerate: boolean | null;
  policy_version: string | null;
  trajectory_sha256: string;
}

type Type = 'STRING' | 'INT32' | 'INT64' | 'DOUBLE' | 'BOOLEAN';
const COLUMNS: readonly (readonly [keyof ParquetRow, Type])[] = [
  ['run', 'STRING'],
  ['group', 'INT32'],
  ['member', 'INT32'],
  ['task_id', 'STRING'],
  ['env_id', 'STRING'],
  ['seed', 'INT64'],
  ['step', 'INT32'],
  ['prompt', 'STRING'],
  ['completion', 'STRING'],
  ['reward', 'DOUBLE'],
  ['member_reward', 'DOUBLE'],
  ['advantage', 'DOUBLE'],
  ['degenerate', 'BOOLEAN'],
  ['policy_version', 'STRING'],
  ['trajectory_sha256', 'STRING'],
];
const ROW_GROUP_ROWS = 10_000;
/** Rows with long texts are written sooner. */
const ROW_GROUP_CHARACTERS = 32 * 1024 * 1024;

export class ParquetFile {
  private readonly writer: ParquetWriter;
  private rows: ParquetRow[] = [];
  private characters = 0;

  constructor(file: string) {
    this.writer = new ParquetWriter({
      writer: fileWriter(file),
      schema: schemaFromColumnData({ columnData: columns([]) }),
      createdBy: 'rollout-farm',
    });
  }

  async add(row: ParquetRow): Promise<void> {
    this.rows.push(row);
    this.characters += row.prompt.length + row.completion.length;
    if (this.rows.length >= ROW_GROUP_ROWS || this.characters >= ROW_GROUP_CHARACTERS) await this.flush();
  }

  async finish(): Promise<void> {
    await this.flush();
    await this.writer.finish();
  }

  private async flush(): Promise<void> {
    if (this.rows.length === 0) return;
    await this.writer.write({ columnData: columns(this.rows), rowGroupSize: this.rows.length });
    this.rows = [];
    this.characters = 0;
  }
}

function columns(rows: readonly ParquetRow[]): ColumnSource[] {
  return COLUMNS.map(([name, type]) => ({ name, type, nullable: true, data: rows.map((row) => row[name]) }));
}
