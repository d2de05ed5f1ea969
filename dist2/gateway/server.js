// The gateway's HTTP server: binds first, answers when its parts are there, and ends without dropping what it has begun.
// Senders of headers have ten seconds; bodies, readers and callers without a key are bounded where they are met.
//
//   bound ──parts──> ready ──drain──> draining (listens no more, so that the next one can) ──all answered, or grace──> closed
import http from 'node:http';
import { messageOf, missingError } from '../shared/errors.js';
import { Admission } from './admission.js';
import { discard } from './body.js';
import { CallerGone, Exchange } from './exchange.js';
import { isLoopback } from './keys.js';
import { GatewayMetrics } from './metrics.js';
import { HttpProblem, problemOf } from './problem.js';
const HEADERS_MS = 10_000;
/** A request that comes before the gateway is ready waits so long; OpenRLHF’s, which may not be refused, longer. */
const HOLD_MS = 30_000;
const HOLD_REWARD_MS = 160_000;
const DISCARD_MS = 2_000;
/** More at once, and the kernel would drop connections that nobody refused. */
const BACKLOG = 8_192;
export class GatewayServer {
    metrics;
    options;
    server;
    work = new Set();
    sockets = new Set();
    desk = null;
    ready;
    setReady = () => { };
    draining = false;
    constructor(options) {
        this.options = options;
        this.metrics = options.metrics ?? new GatewayMetrics();
        this.ready = new Promise((resolve) => {
            this.setReady = resolve;
        });
        this.server = http.createServer({
            headersTimeout: options.headersMs ?? HEADERS_MS,
            // Bodies have their own bounds (body.ts): a slow one is told so, not cut.
            requestTimeout: 0,
            connectionsCheckingInterval: 500,
            keepAliveTimeout: 75_000,
        }, (request, response) => this.take(request, response));
        this.server.on('connection', (socket) => {
            this.sockets.add(socket);
            socket.on('close', () => this.sockets.delete(socket));
        });
        this.server.on('clientError', (error, socket) => {
            if (!socket.writable || error.code === 'ECONNRESET')
                return void socket.destroy();
            const status = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
                ? '408 Request Timeout'
                : error.code === 'HPE_HEADER_OVERFLOW'
                    ? '431 Request Header Fields Too Large'
                    : '400 Bad Request';
            const body = `${JSON.stringify({ error: { code: 'bad_request', message: `this is no HTTP request that can be served: ${status}` } })}\n`;
            socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
        });
    }
    /** Binds. Throws FarmError: exit 2 for an address that would be open to everybody, exit 3 for a port that is taken. */
    static async bind(options) {
        const gateway = new GatewayServer(options);
        await new Promise((resolve, reject) => {
            gateway.server.once('error', (error) => reject(missingError('port_unusable', `cannot listen on ${options.host}:${options.port}: ${messageOf(error)}`, 'choose another --port or --host', error)));
            gateway.server.listen({ port: options.port, host: options.host.replace(/^\[|\]$/g, ''), backlog: BACKLOG }, resolve);
        });
        return gateway;
    }
    get url() {
        const { address, family, port } = this.server.address();
        return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
    }
    /** From now on requests are served; those that came before were held. */
    open(desk) {
        this.desk = desk;
        this.setReady();
    }
    /** Takes no new connection, answers what it has within `graceMs`; `now` cuts the wait short. */
    async drain(graceMs, now) {
        this.draining = true;
        const closed = new Promise((resolve) => this.server.close(() => resolve()));
        this.desk?.drain();
        this.server.closeIdleConnections();
        const cut = new Promise((resolve) => {
            const timer = setTimeout(resolve, graceMs);
            timer.unref();
            if (now.aborted)
                resolve();
            now.addEventListener('abort', () => resolve(), { once: true });
        });
        await Promise.race([this.idle(), cut]);
        // What is still open has been answered, or had its time.
        await new Promise((resolve) => setTimeout(resolve, 50));
        for (const socket of this.sockets)
            socket.destroy();
        await closed;
    }
    async idle() {
        while (this.work.size > 0)
            await Promise.all([...this.work]);
    }
    take(request, response) {
        const exchange = new Exchange(request, response);
        if (this.draining)
            response.setHeader('connection', 'close');
        const call = callOf(exchange.path);
        const work = this.serve(exchange)
            .catch((error) => this.fail(exchange, error))
            .finally(() => {
            this.work.delete(work);
            if (this.draining)
                setImmediate(() => this.server.closeIdleConnections());
            this.metrics.answered(call, exchange.gone.aborted ? 499 : response.statusCode, exchange.elapsedMs / 1000);
        });
        this.work.add(work);
    }
    async serve(exchange) {
        const { path, method } = exchange;
        if (path === '/healthz')
            return exchange.json(200, '{"status":"ok"}\n');
        if (path === '/readyz') {
            const { missing, without } = await this.readiness();
            const ready = missing.length === 0;
            return exchange.json(ready ? 200 : 503, `${JSON.stringify({ ready, missing, without })}\n`);
        }
        // The Python library's app refuses in this order, and so does this call.
        if (path !== '/get_reward' || method === 'POST')
            this.options.keys.admit(exchange.request.headers);
        if (this.desk === null)
            await this.held(exchange);
        await this.desk?.serve(exchange);
    }
    async readiness() {
        if (this.draining)
            return { missing: ['the gateway stops'], without: [] };
        if (this.desk === null)
            return { missing: ['the gateway starts'], without: [] };
        return await this.desk.readiness();
    }
    async held(exchange) {
        let timer;
        const late = new Promise((resolve) => {
            timer = setTimeout(() => resolve('late'), exchange.path === '/get_reward' ? HOLD_REWARD_MS : HOLD_MS);
        });
        const gone = new Promise((resolve) => exchange.gone.addEventListener('abort', () => resolve('gone'), { once: true }));
        const first = await Promise.race([this.ready, late, gone]);
        clearTimeout(timer);
        if (first === 'gone')
            throw new CallerGone();
        if (first === 'late')
            throw new HttpProblem(503, 'not_ready', 'the gateway is not ready yet', '/readyz says what is missing', {
                'retry-after': '2',
            });
    }
    async fail(exchange, error) {
        const { response, request, path } = exchange;
        if (error instanceof CallerGone || exchange.gone.aborted)
            return;
        if (response.headersSent) {
            this.options.log.warn({ path, error: messageOf(error) }, 'an answer was cut off');
            response.destroy();
            return;
        }
        const known = problemOf(error);
        if (known === null)
            this.options.log.error({ path, error: messageOf(error) }, 'a request failed');
        const problem = known ?? new HttpProblem(500, 'internal', 'this should not have happened', 'the gateway’s log says more');
        if (!request.complete) {
            response.setHeader('connection', 'close');
            await discard(request, DISCARD_MS);
        }
        if (path === '/get_reward')
            exchange.json(problem.status, `${JSON.stringify({ error: problem.code === 'unauthorized' ? 'unauthorized' : problem.message })}`, problem.headers);
        else
            exchange.problem(problem);
    }
}
/** Only a closed list: a label that callers could make up would grow without end. */
function callOf(path) {
    if (path.startsWith('/v1/runs/') && path.endsWith('/results'))
        return 'results';
    if (path === '/v1/runs' || path.startsWith('/v1/runs/'))
        return 'runs';
    const known = {
        '/v1/score': 'score',
        '/get_reward': 'get_reward',
        '/metrics': 'metrics',
        '/healthz': 'health',
        '/readyz': 'health',
        '/': 'page',
    };
    return Object.hasOwn(known, path) ? known[path] : 'other';
}
/** Why `host` may not be bound without a key; null if it may. */
export function refuseOpen(host, keys) {
    return keys.open && !isLoopback(host)
        ? `--host ${host} would let everybody in: without FARM_API_KEY only loopback is bound`
        : null;
}
/** What fits in one process of the usual memory. */
export function capacityOf(want = {}) {
    return {
        requests: new Admission(want.requests ?? 4_096),
        samples: new Admission(want.samples ?? 100_000),
        memory: new Admission(want.bytes ?? 256 * 1024 * 1024),
    };
}
