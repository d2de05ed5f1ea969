// The wall clock of one process jumps an hour, and an hour back when it is mended.
export class ClockFault {
    visible = null;
    what;
    clock;
    seconds;
    constructor(name, clock, seconds) {
        this.what = `the clock of ${name}`;
        this.clock = clock;
        this.seconds = seconds;
    }
    async begin() {
        this.clock.jump(this.seconds);
    }
    async heal() {
        this.clock.jump(0);
    }
}
