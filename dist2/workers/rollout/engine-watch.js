// Watches the engine while episodes are at work: a box dies of itself when its engine is silent for a while, and by the time
// that is noticed the engine may answer again. What was lost under a silent engine is nobody's attempt, and the runs wait.
const LOOK_MS = 2_000;
export class EngineWatch {
    driver;
    log;
    pause;
    works = new Set();
    timer;
    looking = false;
    silentSince = null;
    silentUntil = Number.NEGATIVE_INFINITY;
    constructor(driver, log, pause, everyMs = LOOK_MS) {
        this.driver = driver;
        this.log = log;
        this.pause = pause;
        this.timer = setInterval(() => void this.look(everyMs), everyMs);
    }
    /** An episode begins; `wasSilent` tells whether the engine was, at any time since. */
    begin(run) {
        const work = { run, atMs: performance.now() };
        this.works.add(work);
        return {
            wasSilent: () => this.silentSince !== null || this.silentUntil >= work.atMs,
            end: () => this.works.delete(work),
        };
    }
    close() {
        clearInterval(this.timer);
    }
    /** Episodes that are over at once do not need the engine: only those that last have it asked. */
    async look(ageMs) {
        const asked = performance.now();
        const runs = new Set([...this.works].filter((w) => asked - w.atMs >= ageMs).map((w) => w.run));
        if (this.looking || (runs.size === 0 && this.silentSince === null))
            return;
        this.looking = true;
        const answers = await this.driver.answers();
        this.looking = false;
        if (answers) {
            if (this.silentSince !== null)
                this.log.info({ silent_s: secondsSince(this.silentSince) }, 'the engine answers again');
            this.silentSince = null;
            return;
        }
        this.silentSince ??= asked;
        this.silentUntil = performance.now();
        this.log.warn({ since_s: secondsSince(this.silentSince) }, 'waiting for the Docker engine: it does not answer');
        for (const run of runs)
            await this.pause(run, 'the Docker engine does not answer').catch(() => { });
    }
}
function secondsSince(atMs) {
    return Number(((performance.now() - atMs) / 1000).toFixed(1));
}
