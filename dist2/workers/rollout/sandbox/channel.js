// Frames between the driver and the runner (infra/runner/README.md) over the attached stdin and stdout of a container.
// The engine wraps what comes back in its own frames, one per stream; those of stderr are a dying runner's last words.
/** No frame of a sound runner is larger. */
const LARGEST = 1024 * 1024;
const WORDS_KEPT = 2048;
export class Channel {
    onFrame = () => { };
    /** Once, when nothing can come any more. */
    onClosed = () => { };
    /** The last of the runner's stderr. */
    lastWords = '';
    #stream;
    #outer = Buffer.alloc(0);
    #inner = Buffer.alloc(0);
    #closed = false;
    #gathering = false;
    constructor(stream) {
        this.#stream = stream;
        stream.on('data', (chunk) => this.#take(chunk));
        stream.on('error', (error) => this.#close(error.message));
        stream.on('end', () => this.#close('the stream ended'));
        stream.on('close', () => this.#close('the stream closed'));
    }
    /** Resolves when the stream takes more; a closed channel swallows what it is given (`onClosed` has told). */
    async send(type, ...parts) {
        if (this.#closed)
            return;
        const head = Buffer.alloc(5);
        head.writeUInt32LE(parts.reduce((sum, part) => sum + part.length, 0), 0);
        head.write(type, 4, 'latin1');
        this.#gather();
        if (this.#stream.write(Buffer.concat([head, ...parts])))
            return;
        await new Promise((resolve) => {
            const go = () => {
                this.#stream.off('drain', go);
                this.#stream.off('close', go);
                resolve();
            };
            this.#stream.on('drain', go);
            this.#stream.on('close', go);
        });
    }
    /** What is sent in one go leaves in one write: each wakes everybody on the way to the runner. */
    #gather() {
        if (this.#gathering)
            return;
        this.#gathering = true;
        this.#stream.cork();
        process.nextTick(() => {
            this.#gathering = false;
            this.#stream.uncork();
        });
    }
    /** Closing stdin is what ends the runner. */
    destroy() {
        this.#stream.destroy();
        this.#close('closed by us');
    }
    #close(why) {
        if (this.#closed)
            return;
        this.#closed = true;
        this.#outer = this.#inner = Buffer.alloc(0);
        this.onClosed(why);
    }
    #take(chunk) {
        if (this.#closed)
            return;
        this.#outer = this.#outer.length === 0 ? chunk : Buffer.concat([this.#outer, chunk]);
        while (this.#outer.length >= 8) {
            const size = this.#outer.readUInt32BE(4);
            if (this.#outer.length < 8 + size)
                return;
            const payload = this.#outer.subarray(8, 8 + size);
            if (this.#outer[0] === 1)
                this.#inner = this.#inner.length === 0 ? payload : Buffer.concat([this.#inner, payload]);
            else
                this.lastWords = (this.lastWords + payload.toString('utf8')).slice(-WORDS_KEPT);
            this.#outer = this.#outer.subarray(8 + size);
            if (!this.#frames())
                return;
        }
    }
    #frames() {
        while (this.#inner.length >= 5) {
            const size = this.#inner.readUInt32LE(0);
            if (size > LARGEST) {
                this.#stream.destroy();
                this.#close('a broken frame');
                return false;
            }
            if (this.#inner.length < 5 + size)
                return true;
            const type = String.fromCharCode(this.#inner[4]);
            // copied: a slice would keep the whole chunk alive for as long as the output is kept
            const body = Buffer.from(this.#inner.subarray(5, 5 + size));
            this.#inner = this.#inner.subarray(5 + size);
            this.onFrame({ type, body });
            if (this.#closed)
                return false;
        }
        return true;
    }
}
export function u32(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(Math.min(Math.max(0, Math.floor(value)), 0xffffffff));
    return bytes;
}
export function u64(value) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(Math.min(Math.max(0, Math.floor(value)), Number.MAX_SAFE_INTEGER)));
    return bytes;
}
/** A list of byte strings, as the runner's `run` takes them. */
export function byteStrings(list) {
    return Buffer.concat([u32(list.length), ...list.flatMap((one) => [u32(one.length), one])]);
}
