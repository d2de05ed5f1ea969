// What may be a key: the same in a folder and in S3, so that a store can be copied from one into the other.

const KEY_BYTES = 900;

/** A key's segments. Throws RangeError for what could leave the store, hide in it, or differ between two stores. */
export function keySegments(key: string): string[] {
  const segments = key.split('/');
  const odd =
    segments.some((s) => s === '' || s === '.' || s === '..' || /[\u0000-\u001f\u007f\\]/.test(s)) ||
    /[\ud800-\udfff]/u.test(key);
  if (odd || segments[0] === TEMP_FOLDER || Buffer.byteLength(key) > KEY_BYTES)
    throw new RangeError(`not a key of the store: ${JSON.stringify(key.slice(0, 200))}`);
  return segments;
}

/** Where a folder keeps what is on its way: never a key, in no store. */
export const TEMP_FOLDER = '.tmp';
