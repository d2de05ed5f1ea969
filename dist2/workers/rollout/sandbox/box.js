// A box in a container, spoken to through its runner. One request at a time; a heartbeat keeps the runner alive and
// tells us whether it is. When the channel breaks, the driver's post-mortem says whose doing it was.
import { performance } from 'node:perf_hooks';
import { BoxLost, } from '../../../shared/sandbox.js';
import { gradeInBox, resetFault } from './box-grade.js';
import { runToEnd } from './box-run.js';
import { byCodePoint, decodeText, placePath } from './box-text.js';
import { byteStrings, u32, u64 } from './channel.js';
import { batchFrames, layFault } from './file-batch.js';
import { PLACES } from './grading.js';
import { checkLaunch, notStarted } from './launch.js';
const HEARTBEAT_MS = 2_500;
/** Heartbeats without any sign of the runner before the box is given up. */
const MISSED = 10;
const FILES_MS = 60_000;
const RESET_MS = 40_000;
const FARM_CAPS = { maxBytes: 8 * 1024 * 1024, maxEntries: 500 };
export class RunnerBox {
    imageId;
    runnerHash;
    isolation = 'fresh';
    startMs;
    #channel;
    #parts;
    #link;
    #gradePlace;
    #heartbeat;
    #request = null;
    #queue = Promise.resolve();
    #lost = null;
    #closing = null;
    #missed = 0;
    /** When it was last as new: what befell it before is nobody's any more. */
    sinceMs = Date.now();
    #lastComplaint = '';
    constructor(channel, parts) {
        this.#channel = channel;
        this.#parts = parts;
        this.imageId = parts.imageId;
        this.runnerHash = parts.runnerHash;
        this.startMs = parts.startMs;
        this.#link = {
            ask: (running, withinMs, begin) => this.#ask(running, withinMs, begin),
            send: (type, ...given) => channel.send(type, ...given),
        };
        this.#gradePlace = {
            harness: parts.harness,
            users: parts.users,
            imageId: parts.imageId,
            path: parts.path,
            readFarm: async () => (await this.#list('farm', FARM_CAPS)).files,
            laid: false,
            clean: true,
        };
        channel.onFrame = (frame) => this.#take(frame);
        channel.onClosed = (why) => this.#lose(why);
        this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS);
        this.#heartbeat.unref();
    }
    /** The runner has been heard lately: what a neighbour is asked when a box has died. */
    get well() {
        return this.#lost === null && this.#missed <= 2;
    }
    run(command) {
        return this.#oneByOne(() => this.#run(command));
    }
    async #run(command) {
        command.signal?.throwIfAborted();
        const check = checkLaunch(command, '/work', this.#parts.path);
        if (check.status === 'refused')
            return notStarted(check.code, check.message);
        this.#gradePlace.clean = false;
        const parts = [byteStrings(check.launch.argv), byteStrings(check.launch.env)];
        return (await runToEnd(this.#link, command, { type: 'R', parts })).result;
    }
    write(files) {
        return this.#oneByOne(async () => {
            this.#gradePlace.clean = false;
            const paths = [...files.keys()];
            const wired = [];
            for (const [path, content] of files) {
                const at = placePath(path);
                if (at.status !== 'inside')
                    return { ok: false, path, reason: at.status === 'escape' ? 'escape' : 'other', message: at.message };
                wired.push({ place: 'work', path: at.bytes, content });
            }
            const fault = await this.#ask(false, FILES_MS, async (done) => {
                const send = async () => {
                    for (const body of batchFrames(wired))
                        await this.#channel.send('W', body);
                };
                void send();
                return (frame) => {
                    if (frame.type === 'w')
                        done(layFault(frame.body));
                };
            });
            if (fault === null)
                return { ok: true };
            return { ok: false, path: paths[fault.index] ?? '', reason: fault.reason, message: fault.message };
        });
    }
    grade(check) {
        return this.#oneByOne(() => gradeInBox(this.#link, check, this.#gradePlace));
    }
    read(caps) {
        return this.#oneByOne(() => this.#list('work', caps));
    }
    async #list(place, caps) {
        const found = [];
        let path = '';
        let chunks = [];
        const end = await this.#ask(false, FILES_MS, async (done) => {
            void this.#channel.send('L', u64(caps.maxBytes), u32(caps.maxEntries), Buffer.of(PLACES.indexOf(place)));
            return ({ type, body }) => {
                if (type === 'l')
                    done(body);
                if (type !== 'f')
                    return;
                const length = body.readUInt16LE(1);
                if ((body[0] & 1) !== 0) {
                    path = decodeText(body.subarray(3, 3 + length));
                    chunks = [];
                }
                chunks.push(body.subarray(3 + length));
                if ((body[0] & 2) !== 0)
                    found.push([path, Buffer.concat(chunks)]);
            };
        });
        found.sort(([a], [b]) => byCodePoint(a, b));
        return { files: new Map(found), truncated: end.readUInt32LE(0) !== 0 };
    }
    reset() {
        return this.#oneByOne(async () => {
            const answer = await this.#ask(false, RESET_MS, async (done) => {
                void this.#channel.send('X');
                return (frame) => {
                    if (frame.type === 'x')
                        done(frame.body);
                };
            });
            const fault = resetFault(answer);
            if (fault !== null)
                throw fault;
            this.#gradePlace.clean = true;
            this.sinceMs = Date.now();
        });
    }
    close() {
        this.#closing ??= (async () => {
            clearInterval(this.#heartbeat);
            this.#request?.fail(new BoxLost('run', 'engine', 'closed', 'the box was closed meanwhile'));
            void this.#channel.send('Q');
            await this.#parts.end();
            this.#channel.destroy();
        })();
        return this.#closing;
    }
    #oneByOne(work) {
        const next = this.#queue.then(async () => {
            if (this.#lost !== null)
                throw await this.#lost;
            if (this.#closing !== null)
                throw new BoxLost('run', 'engine', 'closed', 'the box is closed');
            return work();
        });
        this.#queue = next.catch(() => { });
        return next;
    }
    /** One request and its answer, within `withinMs`. `begin` sends and returns what takes the frames. */
    #ask(running, withinMs, begin) {
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => this.#lose('no answer in time'), withinMs);
            const settle = () => {
                clearTimeout(timer);
                this.#request = null;
            };
            const request = {
                running,
                frame: () => { },
                fail: (error) => {
                    settle();
                    reject(error);
                },
            };
            this.#request = request;
            const done = (value) => {
                settle();
                resolve(value);
            };
            begin(done).then((frame) => {
                request.frame = frame;
            }, request.fail);
        });
    }
    #take(frame) {
        this.#missed = 0;
        if (frame.type === '!')
            this.#lastComplaint = frame.body.toString('utf8');
        else if (frame.type !== 'p')
            this.#request?.frame(frame);
    }
    #beat() {
        this.#missed += 1;
        if (this.#missed > MISSED)
            this.#lose('the runner is silent');
        else
            void this.#channel.send('P', u64(performance.now()));
    }
    #lose(why) {
        if (this.#lost !== null || this.#closing !== null)
            return;
        clearInterval(this.#heartbeat);
        const request = this.#request;
        this.#lost = this.#parts.judge(request?.running ?? false, this.#lastComplaint || this.#channel.lastWords || why);
        void this.#lost.then((lost) => request?.fail(lost));
    }
}
