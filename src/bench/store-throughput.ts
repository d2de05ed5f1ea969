// How many objects a second the store takes, beside the least that can be done on the same server (bare-put.ts). The arms
// take turns, so that a machine that grows slow is slow for both; no object is put twice.

import { randomBytes } from 'node:crypto';
import pLimit from 'p-limit';
import { objectKey, sha256 } from '../shared/claim.ts';
import { openStoreAddress } from '../shared/store/open.ts';
import { openBarePut } from './bare-put.ts';

export interface StoreThroughput {
  /** Objects a second of each round. */
  ours: number[];
  bare: number[];
}

/** Puts `objects` of `bytes` each, `width` at a time, in each arm of each round, and deletes them afterwards. */
export async function storeThroughput(
  address: string,
  options: { objects: number; bytes: number; width: number; rounds: number },
): Promise<StoreThroughput> {
  const store = await openStoreAddress(address);
  const baseline = await openBarePut(address);
  const ours: number[] = [];
  const bare: number[] = [];
  const put: string[] = [];
  const arm = async (place: (name: string, bytes: Buffer) => Promise<void>): Promise<number> => {
    const limit = pLimit(options.width);
    const contents = Array.from({ length: options.objects }, () => randomBytes(options.bytes));
    const began = performance.now();
    await Promise.all(contents.map((bytes) => limit(() => place(sha256(bytes), bytes))));
    return options.objects / ((performance.now() - began) / 1000);
  };
  const through = (name: string, bytes: Buffer): Promise<void> => {
    put.push(objectKey(name));
    return store.put(objectKey(name), bytes);
  };
  const plain = (name: string, bytes: Buffer): Promise<void> => {
    put.push(`bare-${name}`);
    return baseline.put(`bare-${name}`, bytes);
  };
  try {
    // The first requests of each make its connections.
    for (const place of [through, plain]) await place(sha256(address), Buffer.from(address));
    for (let round = 0; round < options.rounds; round++) {
      const order = round % 2 === 0 ? [through, plain] : [plain, through];
      for (const place of order) (place === through ? ours : bare).push(await arm(place));
    }
    return { ours, bare };
  } finally {
    const limit = pLimit(options.width);
    await Promise.allSettled(put.map((key) => limit(() => store.delete(key))));
    baseline.close();
    await store.close();
  }
}
