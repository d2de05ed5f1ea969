// Files on their way into a box: many small ones in few frames, large ones in parts (infra/runner/README.md, `W`).
import { u32 } from './channel.js';
import { PLACES } from './grading.js';
import { errnoName } from './launch.js';
const FRAME_BYTES = 256 * 1024;
const FIRST = 1;
const LAST = 2;
/** The bodies of the frames, in order. One answer comes for all of them. */
export function* batchFrames(files) {
    let parts = [];
    let size = 0;
    let first = FIRST;
    const frame = (last) => {
        const body = Buffer.concat([Buffer.of(first | last), ...parts]);
        first = 0;
        parts = [];
        size = 0;
        return body;
    };
    for (const { place, path, content } of files) {
        for (let at = 0; at === 0 || at < content.length;) {
            if (size >= FRAME_BYTES)
                yield frame(0);
            const piece = content.subarray(at, at + FRAME_BYTES - size);
            const flags = (at === 0 ? FIRST : 0) | (at + piece.length >= content.length ? LAST : 0);
            const name = at === 0 ? path : Buffer.alloc(0);
            const head = Buffer.from([flags, PLACES.indexOf(place), name.length & 0xff, name.length >> 8]);
            parts.push(head, u32(piece.length), name, piece);
            size += 8 + name.length + piece.length;
            if (piece.length === 0)
                break;
            at += piece.length;
        }
    }
    yield frame(LAST);
}
/** The runner's answer to a batch. */
export function layFault(answer) {
    const status = answer.readUInt32LE(0);
    if (status === 0)
        return null;
    const index = answer.readUInt32LE(8);
    if (status === 1)
        return { index, reason: 'escape', message: 'a link stands in its way' };
    const message = errnoName(answer.readUInt32LE(4));
    return { index, reason: message === 'ENOSPC' || message === 'EDQUOT' ? 'disk' : 'other', message };
}
