// A set of content hashes as marks of eight bytes each, for millions of them in little memory. Two hashes may share a
// mark (one chance in 10^12 among ten million): then something is taken to be claimed that is not, which loses nothing.

const FIRST_SLOTS = 4_096;

export class KeyMarks {
  private high = new Uint32Array(FIRST_SLOTS);
  private low = new Uint32Array(FIRST_SLOTS);
  private count = 0;

  /** `hex`: at least 16 digits. */
  add(hex: string): void {
    if (this.count * 2 >= this.high.length) this.grow();
    if (this.place(...halves(hex))) this.count++;
  }

  has(hex: string): boolean {
    const [high, low] = halves(hex);
    const at = this.find(high, low);
    return this.high[at] === high && this.low[at] === low;
  }

  /** False if it is there already. */
  private place(high: number, low: number): boolean {
    const at = this.find(high, low);
    if (this.high[at] === high && this.low[at] === low) return false;
    this.high[at] = high;
    this.low[at] = low;
    return true;
  }

  /** The slot that holds it, or the free one where it would be. */
  private find(high: number, low: number): number {
    const last = this.high.length - 1;
    let at = low & last;
    while ((this.high[at] !== 0 || this.low[at] !== 0) && (this.high[at] !== high || this.low[at] !== low))
      at = (at + 1) & last;
    return at;
  }

  private grow(): void {
    const { high, low } = this;
    this.high = new Uint32Array(high.length * 2);
    this.low = new Uint32Array(high.length * 2);
    for (let i = 0; i < high.length; i++)
      if (high[i] !== 0 || low[i] !== 0) this.place(high[i] as number, low[i] as number);
  }
}

/** Never both zero, which means a free slot. */
function halves(hex: string): [number, number] {
  const high = Number.parseInt(hex.slice(0, 8), 16);
  const low = Number.parseInt(hex.slice(8, 16), 16);
  return high === 0 && low === 0 ? [0, 1] : [high, low];
}
