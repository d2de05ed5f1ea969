// The plan documents of the groups at work, read once for all of a group's members instead of once for each.
import { readDocument } from '../shared/plan/reader.js';
const KEPT = 64;
/** Larger ones are read each time: their reading is not what their episodes wait for. */
const KEPT_BYTES = 128 * 1024;
export class Documents {
    store;
    kept = new Map();
    constructor(store) {
        this.store = store;
    }
    read(place) {
        if (place.bytes > KEPT_BYTES)
            return readDocument(this.store, place);
        const found = this.kept.get(place.sha256);
        if (found)
            return found;
        const reading = readDocument(this.store, place);
        this.kept.set(place.sha256, reading);
        // What could not be read may be there the next time.
        reading.catch(() => this.kept.delete(place.sha256));
        if (this.kept.size > KEPT)
            this.kept.delete(this.kept.keys().next().value);
        return reading;
    }
}
