// The plan documents of the groups at work, read once for all of a group's members instead of once for each. Groups come
// about in the plan's order, and their documents lie in their packs one behind another: small ones are read some together,
// so that ten million of them are not ten million requests to the store. Each is checked by its own hash.

import { packKey } from '../shared/claim.ts';
import type { Place, PlanDocument } from '../shared/plan/plan.ts';
import { documentOf, readDocument } from '../shared/plan/reader.ts';
import type { Store } from '../shared/store/store.ts';

const KEPT = 512;
/** Larger ones are read each time: their reading is not what their episodes wait for. */
const KEPT_BYTES = 128 * 1024;
/** What is kept decoded takes no more than so many bytes of documents. */
const KEPT_TOGETHER = 8 * 1024 * 1024;
const PAGE_BYTES = 64 * 1024;
const PAGES = 4;

export class Documents {
  private readonly store: Store;
  private readonly kept = new Map<string, { reading: Promise<PlanDocument>; bytes: number }>();
  private readonly pages = new Map<string, Promise<Buffer | null>>();
  private keptBytes = 0;

  constructor(store: Store) {
    this.store = store;
  }

  read(place: Place): Promise<PlanDocument> {
    if (place.bytes > KEPT_BYTES) return readDocument(this.store, place);
    const found = this.kept.get(place.sha256);
    if (found) return found.reading;
    const reading = this.open(place);
    const entry = { reading, bytes: place.bytes };
    this.kept.set(place.sha256, entry);
    this.keptBytes += place.bytes;
    // What could not be read may be there the next time.
    reading.catch(() => {
      if (this.kept.get(place.sha256) === entry) this.drop(place.sha256);
    });
    while (this.kept.size > KEPT || this.keptBytes > KEPT_TOGETHER) this.drop(this.kept.keys().next().value as string);
    return reading;
  }

  private drop(sha256: string): void {
    this.keptBytes -= this.kept.get(sha256)?.bytes ?? 0;
    this.kept.delete(sha256);
  }

  private async open(place: Place): Promise<PlanDocument> {
    const page = Math.floor(place.offset / PAGE_BYTES);
    const end = place.offset + place.bytes;
    if (end > (page + 1) * PAGE_BYTES) return await readDocument(this.store, place);
    const bytes = await this.page(place.pack, page);
    const from = page * PAGE_BYTES;
    try {
      return documentOf(this.store, place, bytes?.subarray(place.offset - from, end - from) ?? null);
    } catch {
      // The page may have been read before it was mended: the document alone says how it stands.
      this.pages.delete(`${place.pack} ${page}`);
      return await readDocument(this.store, place);
    }
  }

  private page(pack: string, page: number): Promise<Buffer | null> {
    const name = `${pack} ${page}`;
    const found = this.pages.get(name);
    if (found) return found;
    const reading = this.store.get(packKey(pack), { offset: page * PAGE_BYTES, length: PAGE_BYTES });
    this.pages.set(name, reading);
    reading.catch(() => this.pages.delete(name));
    if (this.pages.size > PAGES) this.pages.delete(this.pages.keys().next().value as string);
    return reading;
  }
}
