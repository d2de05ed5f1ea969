// One request and its answer: when it came, whether its caller is still there, and the few ways in which it is answered.
// A caller that reads too slowly is cut off; nothing is written twice.
/** A reader that takes nothing for so long is gone. */
const STALLED_MS = 60_000;
export class CallerGone extends Error {
    constructor() {
        super('the caller has gone');
        this.name = 'CallerGone';
    }
}
export class Exchange {
    request;
    response;
    method;
    path;
    query;
    /** On the monotonic clock. */
    cameAt = performance.now();
    /** Aborted when the caller has gone before its answer. */
    gone;
    constructor(request, response) {
        this.request = request;
        this.response = response;
        this.method = request.method ?? 'GET';
        const [path, search] = splitOnce(request.url ?? '/', '?');
        this.path = path;
        this.query = new URLSearchParams(search);
        const controller = new AbortController();
        this.gone = controller.signal;
        response.once('close', () => {
            if (!response.writableFinished)
                controller.abort(new CallerGone());
        });
        response.on('error', () => { });
    }
    get elapsedMs() {
        return performance.now() - this.cameAt;
    }
    header(name) {
        const value = this.request.headers[name];
        return typeof value === 'string' ? value : null;
    }
    send(status, type, body, headers = {}) {
        if (this.response.headersSent || this.response.destroyed)
            return;
        this.response.writeHead(status, {
            'content-type': type,
            'content-length': Buffer.byteLength(body),
            'cache-control': 'no-store',
            'x-content-type-options': 'nosniff',
            ...headers,
        });
        this.response.end(this.method === 'HEAD' ? undefined : body);
    }
    json(status, body, headers = {}) {
        this.send(status, 'application/json', body, headers);
    }
    problem(problem) {
        this.json(problem.status, problem.body(), problem.headers);
    }
    begin(status, type) {
        this.response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
        this.response.flushHeaders();
    }
    /** Writes, and waits until it is taken. Throws CallerGone. */
    async write(text) {
        if (this.gone.aborted)
            throw this.gone.reason;
        if (this.response.write(text))
            return;
        await new Promise((resolve, reject) => {
            const end = () => {
                clearTimeout(timer);
                this.response.off('drain', taken);
                this.gone.removeEventListener('abort', left);
            };
            const taken = () => {
                end();
                resolve();
            };
            const left = () => {
                end();
                reject(this.gone.reason);
            };
            const timer = setTimeout(() => this.response.destroy(), STALLED_MS);
            this.response.once('drain', taken);
            this.gone.addEventListener('abort', left, { once: true });
        });
    }
    end() {
        this.response.end();
    }
}
function splitOnce(text, mark) {
    const at = text.indexOf(mark);
    return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
