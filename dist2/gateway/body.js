// A request's body, bounded in size, in time and in what it inflates to; its bytes are counted against the gateway's
// memory (body-memory.ts) for as long as the request lives. Refused: more than the bound (413), a sender that stalls or
// trickles (408), a sender that goes away, encodings that we do not read (415), bytes that are not what they say.
import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { Admission } from './admission.js';
import { BodyMemory, slowBody } from './body-memory.js';
import { busy, HttpProblem } from './problem.js';
/** Bodies that are inflated at once: each may grow to the bound. */
const inflating = new Admission(2);
const INFLATE = { gzip: promisify(gunzip), 'x-gzip': promisify(gunzip), deflate: promisify(inflate) };
const MANY_PIECES = 256;
/** The bodies of one class of calls, and the memory that they share. */
export class Bodies {
    bounds;
    account;
    memory;
    constructor(bounds, account) {
        this.bounds = bounds;
        this.account = account;
        this.memory = new BodyMemory(account, bounds.pace);
    }
    /** Reads, and holds the memory until `use` is over. `hold`: waits for memory that long instead of refusing (429). */
    async with(request, gone, use, hold) {
        const { memory, bounds } = this;
        const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
        if (encoding !== 'identity' && !isKnown(encoding))
            throw new HttpProblem(415, 'encoding_unknown', 'the body has an encoding that is not read here', 'send it plain or as gzip');
        const length = Number(request.headers['content-length'] ?? 0);
        if (length > bounds.maxBytes)
            throw tooLarge(bounds);
        // Told before it has sent it all.
        if (!hold && this.account.inside > 0 && this.account.inside + length > this.account.capacity) {
            memory.relieve();
            if (this.account.inside + length > this.account.capacity)
                throw full();
        }
        let cut = () => { };
        const holding = memory.arrive((problem) => cut(problem));
        try {
            const raw = await collect(request, { bounds, memory, holding, holds: hold !== undefined }, hold ?? gone, (how) => {
                cut = how;
            });
            if (encoding === 'identity' || !isKnown(encoding)) {
                memory.use(holding);
                return await use(raw);
            }
            memory.arrived(holding);
            if (hold)
                await roomFor(memory, holding, bounds.maxBytes, hold);
            const bytes = await inflated(raw, encoding, bounds, hold ?? gone);
            if (hold)
                memory.give(holding, bounds.maxBytes - bytes.length);
            else {
                if (!memory.may(holding, bytes.length))
                    throw full();
                memory.add(holding, bytes.length);
                memory.use(holding);
            }
            return await use(bytes);
        }
        finally {
            memory.release(holding);
        }
    }
}
/** Before it is inflated, when nobody knows yet how large it will be: thousands of small ones may each grow to the bound. */
async function roomFor(memory, holding, bytes, signal) {
    const take = () => {
        memory.add(holding, bytes);
        memory.use(holding);
    };
    if (signal.aborted)
        throw signal.reason;
    if (memory.may(holding, bytes))
        return take();
    await new Promise((resolve, reject) => {
        const leave = () => {
            stop();
            reject(signal.reason);
        };
        const stop = memory.when(holding, bytes, () => {
            signal.removeEventListener('abort', leave);
            take();
            resolve();
        });
        signal.addEventListener('abort', leave, { once: true });
    });
}
function full() {
    return busy('the gateway holds as many requests as its memory allows', 1);
}
function isKnown(encoding) {
    return Object.hasOwn(INFLATE, encoding);
}
function collect(request, { bounds, memory, holding, holds }, signal, cuts) {
    return new Promise((resolve, reject) => {
        let chunks = [];
        let over = false;
        let unwait = null;
        const late = () => end(slowBody());
        const whole = setTimeout(late, bounds.wholeMs);
        // Who waits for us is not idle.
        const idle = setTimeout(() => (holding.paused ? idle.refresh() : late()), bounds.idleMs);
        const end = (error) => {
            if (over)
                return;
            over = true;
            clearTimeout(whole);
            clearTimeout(idle);
            unwait?.();
            signal.removeEventListener('abort', gone);
            request.off('readable', onReadable).off('end', onEnd).off('close', onClose).off('error', end);
            // A listener stays: a connection that breaks later must not be an error without one.
            request.on('error', () => { });
            if (error) {
                chunks = [];
                reject(error);
            }
            else
                resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
        };
        const gone = () => end(signal.reason);
        /** Asks for room and takes the piece in one go: nobody else can take that room in between. */
        const pump = () => {
            unwait = null;
            holding.paused = false;
            while (!over) {
                if (request.readableLength > 0 && !memory.may(holding)) {
                    if (holds) {
                        unwait = memory.when(holding, 1, pump);
                        return;
                    }
                    memory.relieve();
                    if (!over && !memory.may(holding))
                        end(full());
                    if (over)
                        return;
                }
                const chunk = request.read();
                if (chunk === null)
                    return;
                idle.refresh();
                if (holding.bytes + chunk.length > bounds.maxBytes) {
                    end(tooLarge(bounds));
                    return;
                }
                memory.add(holding, chunk.length);
                chunks.push(chunk);
                // A million pieces of a byte would weigh far more than their bytes.
                if (chunks.length >= MANY_PIECES)
                    chunks = [Buffer.concat(chunks)];
            }
        };
        const onReadable = () => {
            if (unwait === null)
                pump();
        };
        const onEnd = () => end(null);
        const onClose = () => end(new HttpProblem(400, 'body_cut', 'the body ends before its length'));
        if (signal.aborted) {
            gone();
            return;
        }
        cuts(end);
        signal.addEventListener('abort', gone, { once: true });
        request.on('readable', onReadable).on('end', onEnd).on('close', onClose).on('error', end);
    });
}
async function inflated(raw, encoding, bounds, signal) {
    await inflating.take(1, signal);
    try {
        return await INFLATE[encoding](raw, { maxOutputLength: bounds.maxBytes });
    }
    catch (error) {
        if (error.code === 'ERR_BUFFER_TOO_LARGE')
            throw tooLarge(bounds);
        throw new HttpProblem(400, 'body_encoding', `the body is not what its encoding says (${encoding})`);
    }
    finally {
        inflating.give(1);
    }
}
function tooLarge({ maxBytes }) {
    return new HttpProblem(413, 'body_too_large', `the body is larger than ${Math.floor(maxBytes / 2 ** 20)} MB, as it comes or inflated`, 'send it in several requests');
}
/** Takes what a refused sender is still sending, for a while, so that it reads the answer instead of a reset. */
export function discard(request, maxMs) {
    if (request.readableEnded || request.destroyed)
        return Promise.resolve();
    return new Promise((resolve) => {
        const timer = setTimeout(done, maxMs);
        function done() {
            clearTimeout(timer);
            resolve();
        }
        request.once('end', done).once('close', done).once('error', done);
        request.resume();
    });
}
