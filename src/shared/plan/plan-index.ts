// The index of a stored plan, for those who go through it in its order: read through once (its hash, and where every
// stretch begins), then a stretch at a time. A plan of a million groups takes no more memory than one of a thousand.

import { createHash } from 'node:crypto';
import { objectKey, sha256 } from '../claim.ts';
import type { Store } from '../store/store.ts';
import { decodeEntry, type PlanEntry, type PlanRef, placesIn } from './plan.ts';
import { damaged, gone } from './reader.ts';

/** Groups of a stretch. */
const STRETCH = 1_024;
const PIECE_BYTES = 1024 * 1024;
/** Those read last. What a driver looks at lies in two, as a rule. */
const KEPT = 3;
const NEWLINE = 10;

interface Stretch {
  offset: number;
  bytes: number;
  sha256: string;
}

export class PlanIndex {
  /** Groups. */
  readonly length: number;
  private readonly store: Store;
  private readonly ref: PlanRef;
  private readonly stretches: readonly Stretch[];
  private readonly kept = new Map<number, Promise<PlanEntry[]>>();

  /** Throws where the index is gone or is not what its claim says. */
  static async open(store: Store, ref: PlanRef): Promise<PlanIndex> {
    const survey = new StretchSurvey();
    const whole = createHash('sha256');
    const key = objectKey(ref.index.sha256);
    for (let offset = 0; offset < ref.index.bytes; offset += PIECE_BYTES) {
      const piece = await store.get(key, { offset, length: PIECE_BYTES });
      if (piece === null) throw gone(store, key);
      whole.update(piece);
      survey.see(piece);
    }
    const there = await store.head(key);
    if (there === null) throw gone(store, key);
    if (there.bytes !== ref.index.bytes || whole.digest('hex') !== ref.index.sha256)
      throw damaged(store, key, 'its content does not have the hash that it is claimed by');
    const stretches = survey.end();
    const places = placesIn(ref);
    if (survey.lines !== places) throw damaged(store, key, `it has ${survey.lines} groups, not ${places}`);
    return new PlanIndex(store, ref, stretches);
  }

  private constructor(store: Store, ref: PlanRef, stretches: readonly Stretch[]) {
    this.store = store;
    this.ref = ref;
    this.length = placesIn(ref);
    this.stretches = stretches;
  }

  /** Entries of the groups from `from` up to `to`, which may lie beyond the last. */
  async entries(from: number, to: number): Promise<PlanEntry[]> {
    const end = Math.min(to, this.length);
    const found: PlanEntry[] = [];
    for (let at = from; at < end; ) {
      const number = Math.floor(at / STRETCH);
      const [first, past] = [at - number * STRETCH, Math.min(STRETCH, end - number * STRETCH)];
      const stretch = await this.stretch(number);
      for (let i = first; i < past; i++) found.push(stretch[i] as PlanEntry);
      at = number * STRETCH + past;
    }
    return found;
  }

  private stretch(number: number): Promise<PlanEntry[]> {
    const kept = this.kept.get(number);
    this.kept.delete(number);
    const read = kept ?? this.read(number);
    this.kept.set(number, read);
    if (kept !== undefined) return kept;
    read.catch(() => this.kept.delete(number));
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value as number);
    return read;
  }

  private async read(number: number): Promise<PlanEntry[]> {
    const { offset, bytes, sha256: digest } = this.stretches[number] as Stretch;
    const key = objectKey(this.ref.index.sha256);
    const content = await this.store.get(key, { offset, length: bytes });
    if (content === null) throw gone(this.store, key);
    if (sha256(content) !== digest)
      throw damaged(this.store, key, `at ${offset} stands something else than when the run was begun`);
    const lines = content.toString('latin1').split('\n').filter(Boolean);
    const packs = new Map<string, string>();
    return lines.map((line) => {
      const { place, ...rest } = decodeEntry(line);
      // Places in one pack share its name.
      const pack = packs.get(place.pack) ?? place.pack;
      packs.set(pack, pack);
      return { ...rest, place: { ...place, pack } };
    });
  }
}

/** Where stretches begin and end, of bytes that come in pieces. */
class StretchSurvey {
  lines = 0;
  private readonly stretches: Stretch[] = [];
  private offset = 0;
  private bytes = 0;
  private hash = createHash('sha256');

  see(piece: Buffer): void {
    let from = 0;
    for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) {
      this.lines++;
      if (this.lines % STRETCH !== 0) continue;
      this.take(piece.subarray(from, at + 1));
      this.close();
      from = at + 1;
    }
    this.take(piece.subarray(from));
  }

  end(): readonly Stretch[] {
    if (this.bytes > 0) this.close();
    return this.stretches;
  }

  private take(part: Buffer): void {
    this.hash.update(part);
    this.bytes += part.length;
  }

  private close(): void {
    this.stretches.push({ offset: this.offset, bytes: this.bytes, sha256: this.hash.digest('hex') });
    this.offset += this.bytes;
    this.bytes = 0;
    this.hash = createHash('sha256');
  }
}
