// A claim is how a large thing is referred to: by the hash of its content, never by where it lies. Where it
// lies is found by name (an object) or in a shard's index (a pack); both are checked on reading.

import { hash } from 'node:crypto';
import { z } from 'zod';

export const claimSchema = z.strictObject({
  /** `sha256/HEX` */
  key: z.string().regex(/^sha256\/[0-9a-f]{64}$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Size of the content, before any encoding in the store. */
  bytes: z.int().nonnegative(),
});
export type Claim = z.infer<typeof claimSchema>;

export function sha256(content: Uint8Array | string): string {
  return hash('sha256', content, 'hex');
}

export function claimOf(content: Uint8Array): Claim {
  const hex = sha256(content);
  return { key: `sha256/${hex}`, sha256: hex, bytes: content.byteLength };
}

/** Where a claimed object lies in the store when it is an object of its own. */
export function objectKey(hex: string): string {
  return `objects/sha256/${hex.slice(0, 2)}/${hex}`;
}

/** Where a pack lies: named by the hash of its stored bytes. */
export function packKey(hex: string): string {
  return `objects/packs/${hex}`;
}
