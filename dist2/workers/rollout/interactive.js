// The interactive lane's worker side: takes single samples that somebody waits for, in slots that no run can fill, and
// answers through the lane. It has what the lane's lease says it has: a sample that was withdrawn, or given to another,
// is let go; one whose box is lost is given back, for a second try where there is another worker.
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../shared/errors.js';
import { InteractiveLane } from '../../shared/interactive/lane.js';
import { dumpOutcome, readAsked } from '../../shared/interactive/sample-outcome.js';
import { parseJson } from '../../shared/json/json.js';
import { detailOf } from '../../shared/outcome.js';
import { openRedis } from '../../shared/redis/connect.js';
import { DEFAULT_LIMITS } from '../../shared/sandbox.js';
import { playSample } from './sample.js';
/** Renews what it has, and looks whether a ring of the bell was lost. */
const BEAT_MS = 1_000;
/** Before a worker whose engine does not answer takes another: those of others come first. */
const REST_MS = 1_000;
const STOP_MS = 3_000;
class LetGo extends Error {
    why;
    constructor(why) {
        super(`the sample was let go: ${why}`);
        this.why = why;
    }
}
export class InteractiveWorker {
    options;
    lane;
    subscriber;
    held = new Map();
    working = new Set();
    beat;
    taking;
    ending = false;
    beating = false;
    rung = false;
    wake = () => { };
    constructor(options) {
        this.options = options;
        const { redis, place, realm } = options.context;
        this.lane = new InteractiveLane(redis, realm);
        this.subscriber = openRedis(place);
        this.subscriber.on('message', () => this.ring());
        void this.subscriber.subscribe(this.lane.bell).catch(() => { });
        this.beat = setInterval(() => {
            this.ring();
            void this.renew();
        }, BEAT_MS);
        this.taking = this.takeOn();
    }
    async takeOn() {
        while (!this.ending) {
            try {
                if (this.working.size < this.options.slots() && (await this.lane.someWait())) {
                    const sample = await this.lane.take(randomBytes(16).toString('hex'));
                    if (sample) {
                        const work = this.work(sample).finally(() => {
                            this.working.delete(work);
                            this.ring();
                        });
                        this.working.add(work);
                        continue;
                    }
                }
            }
            catch (error) {
                this.options.context.log.debug({ error: messageOf(error) }, 'interactive lane');
            }
            if (!this.ending)
                await this.bell();
        }
    }
    /** Until the bell rings, or rang since it was last waited for. */
    async bell() {
        if (!this.rung) {
            await new Promise((resolve) => {
                this.wake = resolve;
            });
        }
        this.rung = false;
    }
    ring() {
        this.rung = true;
        this.wake();
    }
    async work(sample) {
        const { log } = this.options.context;
        const controller = new AbortController();
        this.held.set(sample.id, { sample, controller });
        const late = setTimeout(() => controller.abort(new LetGo('late')), Math.min(sample.leftMs, 2 ** 31 - 1));
        const began = performance.now();
        const told = await this.score(sample, controller.signal).catch((error) => messageOf(error));
        clearTimeout(late);
        this.held.delete(sample.id);
        log.info({ sample: sample.id, wall_ms: Math.round(performance.now() - began), outcome: told }, 'sample');
    }
    /** What became of it. */
    async score(sample, signal) {
        let played;
        let leave = () => { };
        try {
            leave = await this.options.enter();
            played = await this.play(sample, signal);
        }
        catch (error) {
            const reason = signal.aborted ? signal.reason : error;
            if (reason instanceof LetGo) {
                if (reason.why === 'stop')
                    await this.lane.giveBack(sample);
                // Its gateway has answered already; this only ends it in Redis.
                if (reason.why === 'late')
                    await this.lane.settle(sample, dumpOutcome(failed('environment_silent', reason)));
                return reason.why;
            }
            played = { outcome: failed('environment_error', error), signature: null };
        }
        finally {
            leave();
        }
        const { outcome, signature } = played;
        if (signature === null)
            await this.lane.settle(sample, dumpOutcome(outcome));
        else
            await this.lost(sample, signature, dumpOutcome(outcome));
        return outcome.status === 'completed' ? 'completed' : `${outcome.cause}: ${outcome.detail}`;
    }
    async play(sample, signal) {
        const { driver, context } = this.options;
        const asked = readAsked(sample.shared);
        if (asked === null)
            throw new Error('an environment that cannot be read');
        const labels = { farm: context.farmId, worker: context.worker, member: sample.id };
        const openBox = (within) => driver.open(DEFAULT_LIMITS, labels, within);
        const { content, knownSignature } = sample;
        return await playSample(asked, parseJson(content), { openBox, signal, knownSignature });
    }
    async lost(sample, signature, outcome) {
        await this.lane.again(sample, signature, outcome);
        // The slot stays taken meanwhile.
        if (!(await this.options.driver.answers()) && !this.ending)
            await wait(REST_MS);
    }
    async renew() {
        if (this.beating || this.held.size === 0)
            return;
        this.beating = true;
        try {
            const held = [...this.held.values()];
            const gone = new Set(await this.lane.beat(held.map((one) => one.sample)));
            for (const { sample, controller } of held)
                if (gone.has(sample.id))
                    controller.abort(new LetGo('gone'));
        }
        catch {
            // Redis is away: the lease tells, or the next beat.
        }
        finally {
            this.beating = false;
        }
    }
    async drain() {
        this.ending = true;
        this.ring();
        await this.taking;
        await Promise.all([...this.working]);
        this.close();
    }
    async stop() {
        this.ending = true;
        this.ring();
        for (const { controller } of this.held.values())
            controller.abort(new LetGo('stop'));
        // A Redis that is away is not waited for: leases end by themselves.
        await Promise.race([this.drain(), wait(STOP_MS, undefined, { ref: false })]);
        this.close();
    }
    close() {
        clearInterval(this.beat);
        this.subscriber.disconnect();
    }
}
function failed(cause, error) {
    return { status: 'no_result', cause, detail: detailOf(messageOf(error)) };
}
