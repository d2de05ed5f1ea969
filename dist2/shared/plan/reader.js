// Reads of a stored plan a group's document and the values that it claims, each checked against its hash. What is gone or changed is an error that names the object: nothing is played from it.
import { objectKey, packKey, sha256 } from '../claim.js';
import { missingError } from '../errors.js';
import { parseJson } from '../json/json.js';
import { decodeDocument } from './plan.js';
export async function readDocument(store, place) {
    const key = packKey(place.pack);
    const bytes = await store.get(key, { offset: place.offset, length: place.bytes });
    if (bytes === null)
        throw gone(store, key);
    if (bytes.length !== place.bytes || sha256(bytes) !== place.sha256)
        throw damaged(store, key, `at ${place.offset} stands something else than what was written`);
    return decodeDocument(bytes);
}
export async function readHeld(store, held) {
    if ('inline' in held)
        return held.inline;
    return parseJson((await readObject(store, held.claim)).toString('utf8'));
}
async function readObject(store, claim) {
    const key = objectKey(claim.sha256);
    const bytes = await store.get(key);
    if (bytes === null)
        throw gone(store, key);
    if (bytes.length !== claim.bytes || sha256(bytes) !== claim.sha256)
        throw damaged(store, key, 'its content does not have the hash that it is claimed by');
    return bytes;
}
export function gone(store, key) {
    const hint = 'run the same spec with the same run id again: what is missing is written anew';
    return missingError('object_missing', `${store.address}: ${key} is not there`, hint);
}
export function damaged(store, key, what) {
    const hint = 'delete the object, and run the same spec with the same run id again';
    return missingError('object_damaged', `${store.address}: ${key} is damaged: ${what}`, hint);
}
