// The wall clock of one process jumps an hour, and an hour back when it is mended.

import type { Fault } from '../fault.ts';
import type { WallClock } from '../wall-clock.ts';

export class ClockFault implements Fault {
  readonly visible = null;
  readonly what: string;
  private readonly clock: WallClock;
  private readonly seconds: number;

  constructor(name: string, clock: WallClock, seconds: number) {
    this.what = `the clock of ${name}`;
    this.clock = clock;
    this.seconds = seconds;
  }

  async begin(): Promise<void> {
    this.clock.jump(this.seconds);
  }

  async heal(): Promise<void> {
    this.clock.jump(0);
  }
}
