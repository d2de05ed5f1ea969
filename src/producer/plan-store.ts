// Writes a plan into the store: claimed objects, then packs of documents, then the index that finds them. What is
// there already is not written again, so a resumed or repeated run costs reads. Puts run a few at a time, and no more
// than a pack and those puts is held in memory, beside the index.

import { type Claim, claimOf, objectKey, packKey, sha256 } from '../shared/claim.ts';
import { encodeEntry, type Place, type PlanEntry, type PlanRef } from '../shared/plan/plan.ts';
import { GARBAGE_AGE_MS } from '../shared/store/garbage.ts';
import type { Store } from '../shared/store/store.ts';
import type { PlannedGroup } from './plan.ts';

/** Large enough that a million groups need few packs, small enough to be held a few times over. */
const PACK_BYTES = 8 * 1024 * 1024;
const PARALLEL_PUTS = 8;
/** Objects in flight together, in bytes; one larger than this goes alone. */
const FLIGHT_BYTES = 64 * 1024 * 1024;
/** Half of what `store gc` leaves alone. */
const REWRITE_MS = GARBAGE_AGE_MS / 2;

export async function storePlan(store: Store, groups: Iterable<PlannedGroup>, groupSize: number): Promise<PlanRef> {
  const puts = new Puts(store);
  const written = new Set<string>();
  const index: Buffer[] = [];
  let pack: (Omit<PlanEntry, 'place'> & { bytes: Buffer; sha256: string })[] = [];
  let packBytes = 0;
  let count = 0;
  let spares = 0;
  const closePack = async (): Promise<void> => {
    if (pack.length === 0) return;
    const content = Buffer.concat(pack.map((part) => part.bytes));
    const name = sha256(content);
    let offset = 0;
    const lines = pack.map(({ bytes, sha256, ...entry }) => {
      const place: Place = { pack: name, offset, bytes: bytes.length, sha256 };
      offset += bytes.length;
      return `${encodeEntry({ ...entry, place })}\n`;
    });
    index.push(Buffer.from(lines.join('')));
    pack = [];
    packBytes = 0;
    await puts.add(packKey(name), content);
  };
  try {
    for (const group of groups) {
      for (const { claim, content } of group.objects) {
        if (written.has(claim.sha256)) continue;
        written.add(claim.sha256);
        await puts.add(objectKey(claim.sha256), content);
      }
      if (packBytes + group.document.length > PACK_BYTES) await closePack();
      const { taskId, lane, document, spare, held } = group;
      const bytes = { bytes: document, sha256: sha256(document) };
      pack.push({ taskId, lane, ...(spare === null ? {} : { spare }), ...bytes });
      packBytes += document.length;
      if (held) spares++;
      else count++;
    }
    await closePack();
  } finally {
    // Also after a failure: nothing may be writing when this returns.
    await puts.settle();
  }
  puts.rethrow();
  const content = Buffer.concat(index);
  const claim: Claim = claimOf(content);
  await putOnce(store, objectKey(claim.sha256), content);
  return { index: claim, groups: count, groupSize, ...(spares > 0 ? { spares } : {}) };
}

/** A few puts at a time; the first failure stops further ones. */
class Puts {
  private readonly store: Store;
  private readonly flying = new Set<Promise<void>>();
  private bytes = 0;
  private failure: { error: unknown } | null = null;

  constructor(store: Store) {
    this.store = store;
  }

  /** Waits until there is room, then starts. */
  async add(key: string, content: Buffer): Promise<void> {
    while (this.flying.size > 0 && (this.flying.size >= PARALLEL_PUTS || this.bytes + content.length > FLIGHT_BYTES))
      await Promise.race(this.flying);
    this.rethrow();
    this.bytes += content.length;
    const flight = putOnce(this.store, key, content)
      .catch((error: unknown) => {
        this.failure ??= { error };
      })
      .finally(() => {
        this.bytes -= content.length;
        this.flying.delete(flight);
      });
    this.flying.add(flight);
  }

  async settle(): Promise<void> {
    await Promise.all(this.flying);
  }

  rethrow(): void {
    if (this.failure !== null) throw this.failure.error;
  }
}

// Keys name their content, so the same size is the same object, or a damaged one that reading will name.
async function putOnce(store: Store, key: string, content: Buffer): Promise<void> {
  const found = await store.head(key);
  // `store gc` takes what nobody claims and is a week old: what is to be claimed again is made young in time.
  if (found?.bytes !== content.length || Math.abs(Date.now() - found.writtenAt) > REWRITE_MS)
    await store.put(key, content);
}
