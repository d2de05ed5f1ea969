// Which call is which: the table of paths and methods, and the calls that are too small for a room of their own.
import { farmSamples } from './figures.js';
import { sayError } from './get-reward.js';
import { prometheusText } from './metrics.js';
import { pageOf } from './page.js';
import { HttpProblem } from './problem.js';
export class GatewayDesk {
    parts;
    constructor(parts) {
        this.parts = parts;
    }
    readiness() {
        return this.parts.readiness();
    }
    drain() {
        this.parts.following.drain();
    }
    async serve(exchange) {
        const { path, method } = exchange;
        const read = method === 'GET' || method === 'HEAD';
        if (path === '/get_reward')
            return method === 'POST' ? this.parts.reward.serve(exchange) : sayError(exchange, 405, 'POST required');
        if (path === '/v1/score')
            return method === 'POST' ? this.parts.score.serve(exchange) : refuse(['POST']);
        if (path === '/v1/runs')
            return method === 'POST'
                ? this.parts.runs.submit(exchange)
                : read
                    ? this.parts.runs.list(exchange)
                    : refuse(['GET', 'POST']);
        const [, id, results] = /^\/v1\/runs\/([^/]+)(\/results)?$/.exec(path) ?? [];
        if (id !== undefined) {
            const run = decoded(id);
            if (results)
                return read ? this.follow(exchange, run) : refuse(['GET']);
            return read
                ? this.parts.runs.status(exchange, run)
                : method === 'DELETE'
                    ? this.parts.runs.cancel(exchange, run)
                    : refuse(['GET', 'DELETE']);
        }
        if (path === '/metrics')
            return read ? this.metrics(exchange) : refuse(['GET']);
        if (path === '/')
            return read ? this.page(exchange) : refuse(['GET']);
        throw new HttpProblem(404, 'not_found', 'there is no such path here', 'POST /v1/score, POST /get_reward, /v1/runs, /healthz, /readyz, /metrics, /');
    }
    follow(exchange, run) {
        const follow = exchange.query.get('follow');
        if (follow !== null && !['0', '1', 'true', 'false'].includes(follow))
            throw new HttpProblem(400, 'follow', 'follow must be 1 or 0');
        const after = exchange.query.get('after');
        return this.parts.following.serve(exchange, run, after === '' ? null : after, follow === '1' || follow === 'true');
    }
    async metrics(exchange) {
        const { metrics, figures, gauges } = this.parts;
        const text = prometheusText([...metrics.list(), ...gauges(), ...farmSamples(await figures.read())]);
        exchange.send(200, 'text/plain; version=0.0.4; charset=utf-8', text);
    }
    async page(exchange) {
        const [figures, { missing }] = await Promise.all([this.parts.figures.read(), this.parts.readiness()]);
        exchange.send(200, 'text/html; charset=utf-8', pageOf(figures, missing), {
            'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        });
    }
}
function refuse(allowed) {
    throw new HttpProblem(405, 'method', `this path takes ${allowed.join(' and ')}`, undefined, {
        allow: allowed.join(', '),
    });
}
function decoded(text) {
    try {
        return decodeURIComponent(text);
    }
    catch {
        return text;
    }
}
