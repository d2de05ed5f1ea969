// Reads of a stored plan a group's document and the values that it claims, each checked against its hash. What is gone or changed is an error that names the object: nothing is played from it.

import { type Claim, objectKey, packKey, sha256 } from '../claim.ts';
import { missingError } from '../errors.ts';
import { parseJson } from '../json/json.ts';
import type { Value } from '../json/value.ts';
import type { Store } from '../store/store.ts';
import { decodeDocument, type Held, type Place, type PlanDocument } from './plan.ts';

export async function readDocument(store: Store, place: Place): Promise<PlanDocument> {
  return documentOf(store, place, await store.get(packKey(place.pack), { offset: place.offset, length: place.bytes }));
}

/** The document in the bytes that lie at its place, null for a pack that is not there. */
export function documentOf(store: Store, place: Place, bytes: Buffer | null): PlanDocument {
  const key = packKey(place.pack);
  if (bytes === null) throw gone(store, key);
  if (bytes.length !== place.bytes || sha256(bytes) !== place.sha256)
    throw damaged(store, key, `at ${place.offset} stands something else than what was written`);
  return decodeDocument(bytes);
}

export async function readHeld(store: Store, held: Held): Promise<Value> {
  if ('inline' in held) return held.inline;
  return parseJson((await readObject(store, held.claim)).toString('utf8'));
}

async function readObject(store: Store, claim: Claim): Promise<Buffer> {
  const key = objectKey(claim.sha256);
  const bytes = await store.get(key);
  if (bytes === null) throw gone(store, key);
  if (bytes.length !== claim.bytes || sha256(bytes) !== claim.sha256)
    throw damaged(store, key, 'its content does not have the hash that it is claimed by');
  return bytes;
}

export function gone(store: Store, key: string): Error {
  const hint = 'run the same spec with the same run id again: what is missing is written anew';
  return missingError('object_missing', `${store.address}: ${key} is not there`, hint);
}

export function damaged(store: Store, key: string, what: string): Error {
  const hint = 'delete the object, and run the same spec with the same run id again';
  return missingError('object_damaged', `${store.address}: ${key} is damaged: ${what}`, hint);
}
