// Small contents travel inside the ledger's entries, so that ten million members are not thirty million puts: each is
// 64 hex digits of its content's hash, 8 hex digits of length, and the bytes (compressed as they will be stored).
const HEAD = 72;
export function packBlobs(blobs) {
    return Buffer.concat(blobs.flatMap((b) => [Buffer.from(b.sha256 + b.bytes.length.toString(16).padStart(8, '0'), 'latin1'), b.bytes]));
}
/** Throws on a frame that is cut: the ledger concatenates whole ones only. */
export function unpackBlobs(packed) {
    const blobs = [];
    for (let at = 0; at < packed.length;) {
        const head = packed.toString('latin1', at, at + HEAD);
        const length = Number.parseInt(head.slice(64), 16);
        if (head.length < HEAD || !Number.isInteger(length) || at + HEAD + length > packed.length)
            throw new Error('a blob in the ledger is cut');
        blobs.push({ sha256: head.slice(0, 64), bytes: packed.subarray(at + HEAD, at + HEAD + length) });
        at += HEAD + length;
    }
    return blobs;
}
