// What a worker knows of the runs whose members it gets: settings and store, read once a run. A run that this worker
// must not touch (another key, a store that it cannot open) is refused here, before anything is begun.
import { fingerprint, readSettings } from '../shared/ledger/run-settings.js';
import { runKey } from '../shared/ledger/script.js';
import { openStoreAddress } from '../shared/store/open.js';
import { Documents } from './documents.js';
const KEPT = 64;
export class Runs {
    known = new Map();
    redis;
    config;
    anyKey;
    /** `anyKey`: for one who reads and closes, and asks no verifier. */
    constructor(redis, config, options = { anyKey: false }) {
        this.redis = redis;
        this.config = config;
        this.anyKey = options.anyKey;
    }
    get(run) {
        let entry = this.known.get(run);
        if (!entry) {
            entry = this.read(run);
            // A failure to read is not remembered: the next job tries again.
            entry.then((found) => 'refused' in found && this.known.delete(run), () => this.known.delete(run));
            this.known.set(run, entry);
            if (this.known.size > KEPT)
                this.known.delete(this.known.keys().next().value);
        }
        return entry;
    }
    async read(run) {
        const text = await this.redis.hget(`${runKey(run)}:run`, 'settings');
        if (text === null)
            return { refused: 'the ledger does not know this run' };
        const settings = readSettings(text);
        if (!this.anyKey &&
            settings.keyFingerprint !== null &&
            settings.keyFingerprint !== fingerprint(this.config.ambertraceApiKey)) {
            return { refused: 'this worker does not hold the AmberTrace key that the run was submitted with' };
        }
        const store = await openStoreAddress(settings.store);
        return { settings, store, documents: new Documents(store) };
    }
}
