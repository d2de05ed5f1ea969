// The index of a stored plan, for those who go through it in its order: read through once (its hash, and where every
// stretch begins), then a stretch at a time. A plan of a million groups takes no more memory than one of a thousand.
import { createHash } from 'node:crypto';
import { objectKey, sha256 } from '../claim.js';
import { decodeEntry } from './plan.js';
import { damaged, gone } from './reader.js';
/** Groups of a stretch. */
const STRETCH = 1_024;
const PIECE_BYTES = 1024 * 1024;
/** What a driver looks at lies in two, as a rule. */
const KEPT = 3;
const NEWLINE = 10;
export class PlanIndex {
    /** Groups. */
    length;
    store;
    ref;
    stretches;
    kept = new Map();
    /** Throws where the index is gone or is not what its claim says. */
    static async open(store, ref) {
        const survey = new StretchSurvey();
        const whole = createHash('sha256');
        const key = objectKey(ref.index.sha256);
        for (let offset = 0; offset < ref.index.bytes; offset += PIECE_BYTES) {
            const piece = await store.get(key, { offset, length: PIECE_BYTES });
            if (piece === null)
                throw gone(store, key);
            whole.update(piece);
            survey.see(piece);
        }
        const size = await store.head(key);
        if (size === null)
            throw gone(store, key);
        if (size !== ref.index.bytes || whole.digest('hex') !== ref.index.sha256)
            throw damaged(store, key, 'its content does not have the hash that it is claimed by');
        const stretches = survey.end();
        if (survey.lines !== ref.groups)
            throw damaged(store, key, `it has ${survey.lines} groups, not ${ref.groups}`);
        return new PlanIndex(store, ref, stretches);
    }
    constructor(store, ref, stretches) {
        this.store = store;
        this.ref = ref;
        this.length = ref.groups;
        this.stretches = stretches;
    }
    /** Entries of the groups from `from` up to `to`, which may lie beyond the last. */
    async entries(from, to) {
        const end = Math.min(to, this.length);
        const found = [];
        for (let at = from; at < end;) {
            const number = Math.floor(at / STRETCH);
            const [first, past] = [at - number * STRETCH, Math.min(STRETCH, end - number * STRETCH)];
            const stretch = await this.stretch(number);
            for (let i = first; i < past; i++)
                found.push(stretch[i]);
            at = number * STRETCH + past;
        }
        return found;
    }
    stretch(number) {
        const kept = this.kept.get(number);
        if (kept !== undefined)
            return kept;
        const read = this.read(number);
        this.kept.set(number, read);
        read.catch(() => this.kept.delete(number));
        if (this.kept.size > KEPT)
            this.kept.delete(this.kept.keys().next().value);
        return read;
    }
    async read(number) {
        const { offset, bytes, sha256: digest } = this.stretches[number];
        const key = objectKey(this.ref.index.sha256);
        const content = await this.store.get(key, { offset, length: bytes });
        if (content === null)
            throw gone(this.store, key);
        if (sha256(content) !== digest)
            throw damaged(this.store, key, `at ${offset} stands something else than when the run was begun`);
        const lines = content.toString('latin1').split('\n').filter(Boolean);
        const packs = new Map();
        return lines.map((line) => {
            const { taskId, place, lane } = decodeEntry(line);
            // Places in one pack share its name.
            const pack = packs.get(place.pack) ?? place.pack;
            packs.set(pack, pack);
            return { taskId, place: { ...place, pack }, lane };
        });
    }
}
/** Where stretches begin and end, of bytes that come in pieces. */
class StretchSurvey {
    lines = 0;
    stretches = [];
    offset = 0;
    bytes = 0;
    hash = createHash('sha256');
    see(piece) {
        let from = 0;
        for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) {
            this.lines++;
            if (this.lines % STRETCH !== 0)
                continue;
            this.take(piece.subarray(from, at + 1));
            this.close();
            from = at + 1;
        }
        this.take(piece.subarray(from));
    }
    end() {
        if (this.bytes > 0)
            this.close();
        return this.stretches;
    }
    take(part) {
        this.hash.update(part);
        this.bytes += part.length;
    }
    close() {
        this.stretches.push({ offset: this.offset, bytes: this.bytes, sha256: this.hash.digest('hex') });
        this.offset += this.bytes;
        this.bytes = 0;
        this.hash = createHash('sha256');
    }
}
