// What the farm's processes log, in the order in which it came: the latest lines in memory, all of them in files.

import { appendFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';

const KEPT = 5_000;

export interface LogLine {
  /** By our own steady clock. */
  atMs: number;
  name: string;
  text: string;
}

export class LogBook {
  private lines: LogLine[] = [];
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  add(name: string, text: string): void {
    this.lines.push({ atMs: performance.now(), name, text });
    if (this.lines.length > 2 * KEPT) this.lines = this.lines.slice(-KEPT);
    appendFileSync(path.join(this.folder, `${name}.log`), `${text}\n`);
  }

  /** A line that came after `sinceMs` and says so; of those whose name passes. */
  find(says: RegExp, sinceMs: number, whose: (name: string) => boolean = () => true): LogLine | null {
    return this.lines.find((line) => line.atMs >= sinceMs && whose(line.name) && says.test(line.text)) ?? null;
  }
}
