// The plan documents of the groups at work, read once for all of a group's members instead of once for each.

import type { Place, PlanDocument } from '../shared/plan/plan.ts';
import { readDocument } from '../shared/plan/reader.ts';
import type { Store } from '../shared/store/store.ts';

const KEPT = 64;
/** Larger ones are read each time: their reading is not what their episodes wait for. */
const KEPT_BYTES = 128 * 1024;

export class Documents {
  private readonly store: Store;
  private readonly kept = new Map<string, Promise<PlanDocument>>();

  constructor(store: Store) {
    this.store = store;
  }

  read(place: Place): Promise<PlanDocument> {
    if (place.bytes > KEPT_BYTES) return readDocument(this.store, place);
    const found = this.kept.get(place.sha256);
    if (found) return found;
    const reading = readDocument(this.store, place);
    this.kept.set(place.sha256, reading);
    // What could not be read may be there the next time.
    reading.catch(() => this.kept.delete(place.sha256));
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value as string);
    return reading;
  }
}
