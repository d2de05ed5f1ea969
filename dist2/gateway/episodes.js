// Completions scored in sandboxes: each is one single-step episode in a box of its own. They go to the rollout workers
// through the interactive lane; where no worker is there, to boxes of this process, if it may have some. Requests take
// turns, sample by sample, so that a small one is not behind a large one. What is not over by the deadline has no result.
import { LaneCall } from './interactive-desk.js';
import { linked } from './linked.js';
import { noResult } from './outcome.js';
const LOOK_MS = 1_000;
export class Episodes {
    lane;
    own;
    /** Those with samples that are nowhere yet, in turn. */
    line = [];
    looking = null;
    constructor(places) {
        this.lane = places.lane;
        this.own = places.own;
    }
    /** Samples that wait for a slot or for a worker. */
    get waiting() {
        return this.line.reduce((sum, one) => sum + pending(one), 0);
    }
    /** One outcome a completion, in order; by the deadline. */
    async score(asked, completions, patience) {
        const { until } = patience;
        const { signal, release } = linked([patience.signal], until - performance.now());
        const request = {
            ...{ asked, call: new LaneCall(asked), completions, until, signal },
            ...{ outcomes: [], next: 0, back: [], left: completions.length, inLane: new Set(), done: () => { } },
        };
        const over = new Promise((resolve) => {
            request.done = resolve;
            signal.addEventListener('abort', () => resolve(), { once: true });
            if (signal.aborted || completions.length === 0)
                resolve();
        });
        void this.enter(request);
        await over;
        release();
        this.leave(request);
        // What is in the lane says at once what it was waiting for.
        await Promise.all([...request.inLane]);
        this.lane?.end(request.call);
        return completions.map((_, i) => request.outcomes[i] ?? noResult('not_started', this.why()));
    }
    async enter(request) {
        await this.lane?.look();
        if (request.signal.aborted || request.left === 0)
            return;
        this.line.push(request);
        this.looking ??= setInterval(() => void this.lookAgain(), LOOK_MS);
        this.pump();
    }
    /** Workers come and go. */
    async lookAgain() {
        await this.lane?.look();
        this.pump();
    }
    leave(request) {
        this.line = this.line.filter((one) => one !== request);
        if (this.line.length > 0 || this.looking === null)
            return;
        clearInterval(this.looking);
        this.looking = null;
    }
    pump() {
        for (;;) {
            const place = this.place();
            const request = place === null ? undefined : this.line.shift();
            if (!request)
                return;
            const index = request.back.shift() ?? request.next++;
            if (pending(request) > 0)
                this.line.push(request);
            if (place === 'lane')
                this.toLane(request, index);
            else
                this.toOwn(request, index);
        }
    }
    /** Where the next sample can go now. */
    place() {
        if (this.lane?.workers)
            return this.lane.hasRoom ? 'lane' : null;
        return this.own?.hasRoom ? 'own' : null;
    }
    toLane(request, index) {
        const { call, completions, until, signal } = request;
        const playing = this.lane
            .play(call, index, completions[index], until, signal)
            .then((outcome) => {
            request.inLane.delete(playing);
            if (outcome !== 'nobody')
                this.settle(request, index, outcome);
            else if (!signal.aborted) {
                request.back.push(index);
                if (!this.line.includes(request))
                    this.line.push(request);
            }
            this.pump();
        });
        request.inLane.add(playing);
    }
    toOwn(request, index) {
        const { asked, completions, signal } = request;
        // Until it is known better: the slot is held until the box is gone, the answer waits only for the deadline.
        request.outcomes[index] = noResult('environment_silent', 'the episode was not over by the deadline');
        void this.own
            .play(asked, completions[index], signal, () => this.pump())
            .then((outcome) => this.settle(request, index, outcome));
    }
    settle(request, index, outcome) {
        request.outcomes[index] = outcomeOf(outcome);
        if (--request.left === 0)
            request.done();
    }
    why() {
        if (this.lane && !this.lane.workers && !this.own)
            return 'no rollout worker is there';
        return 'no sandbox was free before the deadline';
    }
    /** Waits until every box of this process is gone. */
    async close() {
        if (this.looking)
            clearInterval(this.looking);
        this.looking = null;
        await Promise.all([this.lane?.close(), this.own?.close()]);
    }
}
function pending(request) {
    return request.back.length + request.completions.length - request.next;
}
function outcomeOf(outcome) {
    if (outcome.status === 'no_result')
        return outcome;
    const { status, reward, steps, diagnostics } = outcome;
    const more = new Map([
        ['components', new Map([['env', reward]])],
        ['steps', BigInt(steps)],
        ['diagnostics', [...diagnostics]],
    ]);
    return { status, reward, more };
}
