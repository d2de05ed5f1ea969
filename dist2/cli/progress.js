// How far a run is, on stderr: a bar on a terminal, a line now and then elsewhere.
const WIDTH = 32;
const LINE_EVERY_MS = 5_000;
const BAR_EVERY_MS = 100;
export class Progress {
    run;
    total;
    screen;
    began = performance.now();
    shownAt = Number.NEGATIVE_INFINITY;
    shown = '';
    first = null;
    constructor(run, total, screen) {
        this.run = run;
        this.total = total;
        this.screen = screen;
    }
    show(tick) {
        const now = performance.now();
        this.first ??= tick.accepted;
        if (now - this.shownAt < (this.screen.live ? BAR_EVERY_MS : LINE_EVERY_MS))
            return;
        this.shownAt = now;
        const seconds = (now - this.began) / 1000;
        const rate = seconds > 1 ? (tick.accepted - this.first) / seconds : 0;
        const share = this.total === 0 ? 1 : tick.accepted / this.total;
        const paused = tick.state === 'paused' ? ' paused' : '';
        const figures = `${tick.accepted}/${this.total} members, ${tick.closed} groups closed, ${tick.begun} at work, ${rate.toFixed(1)}/s${paused}`;
        if (this.screen.live) {
            const full = Math.round(share * WIDTH);
            this.screen.draw(`${'█'.repeat(full)}${'░'.repeat(WIDTH - full)} ${figures}`);
        }
        else if (figures !== this.shown) {
            this.screen.lines(`farm: ${this.run} ${figures}\n`);
        }
        this.shown = figures;
    }
    end() {
        this.screen.end();
    }
}
