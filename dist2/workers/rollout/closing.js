// Boxes whose episode is over and which are on their way out. The member's outcome does not wait for that; its slot does,
// for a while, so that a worker has no more boxes than slots while its engine is well. One that takes longer is left behind:
// at most as many as the worker has slots, beyond that a slot waits until one is gone. What is never closed is the sweeper's.
import { within } from '../../shared/within.js';
/** For a box that does not go, until its slot goes on without it. */
const SLOT_MS = 20_000;
/** Longer than any call to an engine may take: then it is the sweeper's. */
const GIVEN_UP_MS = 180_000;
export class Closings {
    most;
    log;
    guest;
    slotMs;
    givenUpMs;
    closing = new Set();
    left = new Set();
    over = false;
    /** `guest`: one that is left behind is at work in this process still. */
    constructor(most, log, guest, times = {}) {
        this.most = Math.max(1, most);
        this.log = log;
        this.guest = guest;
        this.slotMs = times.slotMs ?? SLOT_MS;
        this.givenUpMs = times.givenUpMs ?? GIVEN_UP_MS;
    }
    /** How many are on their way out. */
    get unclosed() {
        return this.closing.size;
    }
    /** Resolves when the slot may go on. Never rejects: what could not be closed is swept. */
    async keep(member, close) {
        const began = performance.now();
        const closed = within(close.catch(() => { }), this.givenUpMs, undefined);
        this.closing.add(closed);
        void closed.then(() => this.closing.delete(closed));
        const inTime = closed.then(() => true);
        if (await within(inTime, this.slotMs, false))
            return;
        const since = () => Number(((performance.now() - began) / 1000).toFixed(1));
        const told = { member, since_s: since(), unclosed: this.unclosed, most: this.most };
        this.log.warn({ ...told, until_s: this.givenUpMs / 1000 }, 'waiting for the Docker engine: a box does not close');
        const leave = await this.guest().catch(() => () => { });
        this.left.add(closed);
        void closed.then(() => {
            this.left.delete(closed);
            leave();
            this.log.info({ member, closing_s: since() }, 'a box that was left behind is closed, or left to the sweeper');
        });
        while (this.left.size > this.most && !this.over)
            await Promise.race(this.left);
    }
    /** Until all are gone, within the time of a slot: the process goes away. */
    async settled() {
        this.over = true;
        await within(Promise.all(this.closing), this.slotMs, null);
    }
}
