// What the farm's processes log, in the order in which it came: the latest lines in memory, all of them in files.
import { appendFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
const KEPT = 5_000;
export class LogBook {
    lines = [];
    folder;
    constructor(folder) {
        this.folder = folder;
        mkdirSync(folder, { recursive: true });
    }
    add(name, text) {
        this.lines.push({ atMs: performance.now(), name, text });
        if (this.lines.length > 2 * KEPT)
            this.lines = this.lines.slice(-KEPT);
        appendFileSync(path.join(this.folder, `${name}.log`), `${text}\n`);
    }
    /** A line that came after `sinceMs` and says so; of those whose name passes. */
    find(says, sinceMs, whose = () => true) {
        return this.lines.find((line) => line.atMs >= sinceMs && whose(line.name) && says.test(line.text)) ?? null;
    }
}
