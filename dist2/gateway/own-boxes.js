// Samples scored in boxes that this process opens itself, where no rollout worker is there to take them: a bounded
// number at once. A box that is lost is tried once more; the same death again is the action's own doing. The engine is
// met only when a box is first asked for.
import { FarmError, messageOf } from '../shared/errors.js';
import { detailOf } from '../shared/outcome.js';
import { DEFAULT_LIMITS } from '../shared/sandbox.js';
import { playSample } from '../workers/rollout/sample.js';
export class OwnBoxes {
    options;
    driver = null;
    prepared = null;
    playing = new Set();
    constructor(options) {
        this.options = options;
    }
    /** A slot is taken until its box is gone, also when nobody waits any more. */
    get hasRoom() {
        return this.playing.size < this.options.slots;
    }
    /** Never rejects. `over` is called when the slot is free again. */
    async play(asked, completion, signal, over) {
        const playing = this.twice(asked, completion, signal).catch((error) => {
            if (signal.aborted)
                return { status: 'no_result', cause: 'environment_silent', detail: 'the episode was not over by the deadline' };
            const detail = error instanceof FarmError ? error.message : messageOf(error);
            return { status: 'no_result', cause: 'sandbox_start', detail: detailOf(detail) };
        });
        this.playing.add(playing);
        const outcome = await playing;
        this.playing.delete(playing);
        over();
        return outcome;
    }
    async twice(asked, completion, signal) {
        const openBox = (within) => this.openBox(within);
        const first = await playSample(asked, completion, { openBox, signal, knownSignature: null });
        if (first.signature === null)
            return first.outcome;
        return (await playSample(asked, completion, { openBox, signal, knownSignature: first.signature })).outcome;
    }
    async openBox(signal) {
        this.driver ??= this.options.openDriver();
        const { driver } = this;
        this.prepared ??= driver.prepare(DEFAULT_LIMITS.image);
        try {
            await this.prepared;
        }
        catch (error) {
            // The engine may be there the next time.
            this.prepared = null;
            throw error;
        }
        // No farm's label: boxes of a gateway end with its channel, and no worker of the farm may sweep them before.
        return await driver.open(DEFAULT_LIMITS, { farm: 'gateway', worker: this.options.worker }, signal);
    }
    /** Waits until every box is gone. */
    async close() {
        await Promise.all([...this.playing]);
        await this.driver?.close();
    }
}
