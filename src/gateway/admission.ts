// How much may be inside at once. What comes through `tryTake` is refused beyond that (429, and the caller comes back);
// what comes through `take` waits in line for as long as its signal lets it. Units are the caller's: bytes, samples, requests.

interface Waiting {
  units: number;
  go(): void;
}

export class Admission {
  readonly capacity: number;
  private used = 0;
  private readonly line: Waiting[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get inside(): number {
    return this.used;
  }

  get waiting(): number {
    return this.line.length;
  }

  /** True if there was room, which is then taken. More than all of it goes in alone. */
  tryTake(units: number): boolean {
    if (this.line.length > 0 || (this.used > 0 && this.used + units > this.capacity)) return false;
    this.used += units;
    return true;
  }

  /** In order of arrival. Rejects with the signal's reason. */
  take(units: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.tryTake(units)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.line.splice(this.line.indexOf(waiting), 1);
        reject(signal.reason);
        this.call();
      };
      const waiting: Waiting = {
        units,
        go: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      this.line.push(waiting);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Takes without asking. */
  add(units: number): void {
    this.used += units;
  }

  give(units: number): void {
    this.used -= units;
    this.call();
  }

  private call(): void {
    for (;;) {
      const next = this.line[0];
      if (!next || (this.used > 0 && this.used + next.units > this.capacity)) return;
      this.line.shift();
      this.used += next.units;
      next.go();
    }
  }
}
