// Content and where it lies. One rule: the object at `objectKey(HEX)` is exactly the content whose hash is HEX,
// never an encoding of it. Its bytes then depend on nobody's compressor, every writer writes the same, and a
// trajectory opens in any tool as it lies. What is small when compressed travels in `accept` instead and ends in
// its shard's pack. Refuses content whose stored bytes, size or hash differ in anything.

import { createHash, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { type Claim, claimOf, objectKey, packKey, sha256 } from '../claim.ts';
import { inputError, messageOf, missingError } from '../errors.ts';
import type { Store } from './store.ts';

/** Compressed content up to this many bytes travels in `accept`. */
export const INLINE_CONTENT_BYTES = 1536;
/** Longer content is not even tried: it becomes an object of its own. */
const INLINE_TRY_BYTES = 64 * 1024;
/** Above this, hashing and compressing leave the event loop. */
const AWAY_BYTES = 256 * 1024;
/** Objects are hashed in pieces of this size: an object may be larger than memory likes. */
const PIECE_BYTES = 4 * 1024 * 1024;

const hex = z.string().regex(/^[0-9a-f]{64}$/);
const stored = {
  sha256: hex,
  bytes: z.int().nonnegative(),
  stored_bytes: z.int().nonnegative(),
  stored_sha256: hex,
  enc: z.enum(['identity', 'gzip']),
};
/** Where a claim's content lies, and what is stored there. */
export const placementSchema = z.union([
  z.strictObject({ ...stored, object: z.string() }),
  z.strictObject({ ...stored, pack: hex, offset: z.int().nonnegative() }),
]);
export type Placement = z.infer<typeof placementSchema>;

/** Where a claim lies that no index places: an object of its own. */
export function ownObject(claim: Claim): Placement {
  return {
    sha256: claim.sha256,
    bytes: claim.bytes,
    stored_bytes: claim.bytes,
    stored_sha256: claim.sha256,
    enc: 'identity',
    object: objectKey(claim.sha256),
  };
}

/** Puts content away, before it is claimed: durable on return, or small enough to travel as `inline` (gzip) in `accept`. */
export async function putContent(store: Store, content: Buffer): Promise<{ claim: Claim; inline: Buffer | null }> {
  if (content.byteLength <= INLINE_TRY_BYTES) {
    const claim = claimOf(content);
    const inline = lately.get(claim.sha256) ?? gzipSteadySync(content);
    if (inline.byteLength <= INLINE_CONTENT_BYTES) {
      remember(claim.sha256, inline);
      return { claim, inline };
    }
  }
  const digest = await sha256Away(content);
  await store.put(objectKey(digest), content);
  return { claim: { key: `sha256/${digest}`, sha256: digest, bytes: content.byteLength }, inline: null };
}

/** Puts, and reads back what was put: for what is the only copy from then on. Throws FarmError (exit 3) where the store has something else. */
export async function putSound(store: Store, key: string, bytes: Buffer): Promise<void> {
  await store.put(key, bytes);
  const back = await store.get(key);
  if (back?.equals(bytes)) return;
  throw missingError(
    'store_lies',
    `the store ${store.address} took ${key} and ${back === null ? 'does not have it' : 'gives back something else'}`,
    'nothing of it was acknowledged; look at the store, and at what lies before it',
  );
}

/** Equal contents come close together, as those of a group's members that act alike: they are compressed once. */
const lately = new Map<string, Buffer>();
const LATELY = 128;

function remember(digest: string, inline: Buffer): void {
  lately.set(digest, inline);
  if (lately.size > LATELY) lately.delete(lately.keys().next().value as string);
}

/** The content of a claim, verified in stored and in plain form. Throws FarmError (exit 2) that says what is wrong with it. */
export async function readContent(store: Store, claim: Claim, where: Placement = ownObject(claim)): Promise<Buffer> {
  const key = 'pack' in where ? packKey(where.pack) : where.object;
  const bytes = await store.get(
    key,
    'pack' in where ? { offset: where.offset, length: where.stored_bytes } : undefined,
  );
  const result = bytes === null ? { fault: `${key} is not there` } : await decodeContent(bytes, claim, where);
  if ('content' in result) return result.content;
  throw inputError(
    'content_broken',
    `${claim.key} in ${store.address}: ${result.fault}`,
    'verify-run names all that is broken in a run',
  );
}

/** The content of what travelled inline, verified. Throws where it is not what the claim says. */
export async function readInline(inline: Buffer, claim: Claim): Promise<Buffer> {
  const plain = await gunzipBounded(inline, claim.bytes);
  if ('fault' in plain) throw inputError('content_broken', `${claim.key}, inline: ${plain.fault}`);
  if (claimOf(plain.content).sha256 !== claim.sha256)
    throw inputError('content_broken', `${claim.key}, inline: another content`);
  return plain.content;
}

/** Stored bytes to content, with every check that a placement and a claim allow. Never throws. */
export async function decodeContent(
  bytes: Buffer,
  claim: Claim,
  where: Placement,
): Promise<{ content: Buffer } | { fault: string }> {
  if (bytes.byteLength !== where.stored_bytes)
    return { fault: `${bytes.byteLength} stored bytes where ${where.stored_bytes} are promised` };
  const storedHash = await sha256Away(bytes);
  if (storedHash !== where.stored_sha256) return { fault: `its stored bytes have the hash ${storedHash}` };
  if (where.bytes !== claim.bytes) return { fault: `the index says ${where.bytes} bytes, the claim ${claim.bytes}` };
  let content = bytes;
  if (where.enc === 'gzip') {
    const plain = await gunzipBounded(bytes, claim.bytes);
    if ('fault' in plain) return plain;
    content = plain.content;
  }
  if (content.byteLength !== claim.bytes)
    return { fault: `${content.byteLength} bytes of content where ${claim.bytes} are claimed` };
  const hash = where.enc === 'identity' ? storedHash : await sha256Away(content);
  return hash === claim.sha256 ? { content } : { fault: `its content has the hash ${hash}` };
}

/** What is wrong with an object that holds exactly the claimed content, or null. Reads in pieces; throws only where the store cannot be read. */
export async function checkObject(store: Store, key: string, digest: string, bytes: number): Promise<string | null> {
  const size = (await store.head(key))?.bytes;
  if (size === undefined) return `${key} is not there`;
  if (size !== bytes) return `${key} has ${size} bytes where ${bytes} are claimed`;
  const hash = createHash('sha256');
  for (let offset = 0; offset < size; offset += PIECE_BYTES) {
    const piece = await store.get(key, { offset, length: PIECE_BYTES });
    if (piece === null) return `${key} is not there`;
    hash.update(piece);
  }
  const found = hash.digest('hex');
  return found === digest ? null : `${key} has the hash ${found}`;
}

/** gzip of the same bytes for the same content: fixed level, no time, no mark of the operating system. */
export async function gzipSteady(content: Uint8Array): Promise<Buffer> {
  return content.byteLength > AWAY_BYTES
    ? withoutSystem(await promisify<Uint8Array, typeof GZIP, Buffer>(gzip)(content, GZIP))
    : gzipSteadySync(content);
}

const GZIP = { level: 6, memLevel: 8, windowBits: 15, strategy: constants.Z_DEFAULT_STRATEGY };

/** What zlib keeps free of its window (its deflate.h). */
const MIN_LOOKAHEAD = 262;

/** A window that holds the whole content finds what a larger one would, and what is small costs less than half to set up. */
function gzipSteadySync(content: Uint8Array): Buffer {
  const bits = Math.max(10, 32 - Math.clz32(content.byteLength + MIN_LOOKAHEAD));
  if (bits >= GZIP.windowBits) return withoutSystem(gzipSync(content, GZIP));
  const options = { ...GZIP, windowBits: bits, memLevel: bits - 6, chunkSize: Math.max(64, content.byteLength) };
  return withoutSystem(gzipSync(content, options));
}

function withoutSystem(bytes: Buffer): Buffer {
  bytes[9] = 255;
  return bytes;
}

/** Never throws, and never inflates beyond what is expected. */
export async function gunzipBounded(
  bytes: Uint8Array,
  maxBytes: number,
): Promise<{ content: Buffer } | { fault: string }> {
  const options = { maxOutputLength: maxBytes + 1 };
  try {
    const content =
      maxBytes > AWAY_BYTES
        ? await promisify<Uint8Array, typeof options, Buffer>(gunzip)(bytes, options)
        : gunzipSync(bytes, options);
    return content.byteLength > maxBytes ? { fault: `it inflates to more than ${maxBytes} bytes` } : { content };
  } catch (error) {
    return error instanceof RangeError
      ? { fault: `it inflates to more than ${maxBytes} bytes` }
      : { fault: `it is not sound gzip (${messageOf(error)})` };
  }
}

/** Several gzips one behind the other as one content of so many bytes; null if they are anything else. */
export function gunzipTogether(parts: readonly Buffer[], bytes: number): Buffer | null {
  try {
    const content = gunzipSync(Buffer.concat(parts), {
      maxOutputLength: bytes + 1,
      chunkSize: Math.max(64, bytes + 1),
    });
    return content.byteLength === bytes ? content : null;
  } catch {
    return null;
  }
}

/** SHA-256, in another thread where the content is large. */
export async function sha256Away(content: Uint8Array): Promise<string> {
  if (content.byteLength <= AWAY_BYTES) return sha256(content);
  return Buffer.from(await webcrypto.subtle.digest('SHA-256', content)).toString('hex');
}
