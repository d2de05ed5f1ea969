// What verify-run keeps while it reads: the faults, one line each and no more than people can read; which objects
// were found sound already; which groups were seen. Its memory does not grow with what a run has stored.

import pLimit from 'p-limit';
import { type Claim, objectKey } from '../claim.ts';
import { messageOf } from '../errors.ts';
import { checkObject, decodeContent, ownObject } from './content.ts';
import type { Store } from './store.ts';

const KEPT_FAULTS = 500;
const KEPT_OBJECTS = 200_000;
const READS_AT_ONCE = 8;
/** Larger contents are inspected one at a time. */
const LARGE_BYTES = 1024 * 1024;
/** Larger contents are hashed in pieces and not inspected: reading one takes several times its size in memory. */
const INSPECTED_BYTES = 128 * 1024 * 1024;

/** Looks at content whose hash is sound. */
export type Inspect = (digest: string, content: Buffer) => void;

export class Account {
  readonly store: Store;
  faultCount = 0;
  private readonly faults: string[] = [];
  private readonly sound = new Map<string, number>();
  private readonly read = pLimit(READS_AT_ONCE);
  private readonly readLarge = pLimit(1);

  constructor(store: Store) {
    this.store = store;
  }

  fault(text: string): void {
    this.faultCount++;
    if (this.faults.length < KEPT_FAULTS) this.faults.push(text.replace(/[\r\n]+/g, ' '));
  }

  lines(): string[] {
    const more = this.faultCount - this.faults.length;
    return more > 0 ? [...this.faults, `… and ${more} more faults`] : [...this.faults];
  }

  /** Reads an object, or null with a fault. */
  async get(key: string): Promise<Buffer | null> {
    try {
      const bytes = await this.store.get(key);
      if (bytes === null) this.fault(`${key}: is not there`);
      return bytes;
    } catch (error) {
      this.fault(`${key}: ${messageOf(error)}`);
      return null;
    }
  }

  /** Each claim is an object of its own that holds exactly what is claimed. Without `inspect` each is read once. */
  async objects(claims: readonly Claim[], whose: string, inspect?: Inspect): Promise<boolean> {
    const results = await Promise.all(
      claims.map((claim) => {
        const looked = inspect !== undefined && claim.bytes <= INSPECTED_BYTES ? inspect : undefined;
        const limit = looked !== undefined && claim.bytes > LARGE_BYTES ? this.readLarge : this.read;
        return limit(() => this.object(claim, whose, looked));
      }),
    );
    return results.every((ok) => ok);
  }

  private async object(claim: Claim, whose: string, inspect: Inspect | undefined): Promise<boolean> {
    if (inspect === undefined && this.sound.get(claim.sha256) === claim.bytes) return true;
    let fault: string | null;
    try {
      fault = inspect ? await this.whole(claim, inspect) : await this.pieces(claim);
    } catch (error) {
      fault = messageOf(error);
    }
    if (fault !== null) {
      this.fault(`claim ${claim.key} (${whose}): ${fault}`);
      return false;
    }
    if (this.sound.size >= KEPT_OBJECTS) this.sound.clear();
    this.sound.set(claim.sha256, claim.bytes);
    return true;
  }

  private pieces(claim: Claim): Promise<string | null> {
    return checkObject(this.store, objectKey(claim.sha256), claim.sha256, claim.bytes);
  }

  private async whole(claim: Claim, inspect: Inspect): Promise<string | null> {
    const key = objectKey(claim.sha256);
    const size = (await this.store.head(key))?.bytes;
    if (size === undefined) return `${key} is not there`;
    // What has another size need not be read, however large it is.
    if (size !== claim.bytes) return `${key} has ${size} bytes where ${claim.bytes} are claimed`;
    const bytes = await this.store.get(key);
    if (bytes === null) return `${key} is not there`;
    const result = await decodeContent(bytes, claim, ownObject(claim));
    if ('fault' in result) return `${key}: ${result.fault}`;
    inspect(claim.sha256, result.content);
    return null;
  }
}

/** `3, 7–9, 12`: numbers in ascending order, at most ten runs of them. */
export function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length; ) {
    let end = i;
    while (end + 1 < numbers.length && numbers[end + 1] === (numbers[end] as number) + 1) end++;
    parts.push(i === end ? `${numbers[i]}` : `${numbers[i]}–${numbers[end]}`);
    i = end + 1;
  }
  return parts.length > 10 ? `${parts.slice(0, 10).join(', ')}, …` : parts.join(', ');
}
