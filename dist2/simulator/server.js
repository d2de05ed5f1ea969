// The AmberTrace stand-in over real HTTP: single query, batch and health, with the real one's envelopes and refusals.
// It speaks the wire and proves nothing; every answer says so, in a header and in its data.
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, missingError } from '../shared/errors.js';
import { dumpJson, parseJson } from '../shared/json/json.js';
import { isMap } from '../shared/json/value.js';
import { answerQuery } from './answer.js';
import { failCall, failItem } from './fault.js';
import { readMisbehave, Trouble } from './misbehave.js';
import { BUILT_IN, loadRulebook } from './rulebook.js';
const MAX_BODY_BYTES = 16 * 1024 * 1024;
const MAX_BATCH = 50;
const PATH = /^\/api\/v1\/platforms\/([^/]+)\/(query|query-batch)$/;
export async function startSimulator(options = {}) {
    const books = new Map();
    for (const name of options.rulebooks?.length ? options.rulebooks : BUILT_IN) {
        const book = await loadRulebook(name);
        books.set(String(book.platform_id), book);
    }
    const misbehave = await readMisbehave(options.misbehave);
    const trouble = new Trouble(misbehave);
    const calls = { query: 0, batch: 0, health: 0, queries: 0, inFlight: 0 };
    const sockets = new Set();
    const server = http.createServer((request, response) => {
        serve(request, response).then((reply) => send(response, reply), (error) => send(response, failure(500, 'internal_error', messageOf(error))));
    });
    const serve = async (request, response) => {
        const url = (request.url ?? '').split('?')[0];
        if (url === '/ambertrace/health') {
            calls.health++;
            return {
                status: 200,
                body: new Map([
                    ['status', 'ok'],
                    ['simulated', true],
                ]),
            };
        }
        const [, platform, path] = PATH.exec(url) ?? [];
        const text = await readBody(request);
        if (path === undefined)
            return failure(404, 'not_found', 'no such path');
        if (request.method !== 'POST')
            return failure(405, 'method_not_allowed', 'POST is expected');
        const batch = path === 'query-batch';
        calls[batch ? 'batch' : 'query']++;
        calls.inFlight++;
        response.once('close', () => {
            calls.inFlight--;
        });
        if (misbehave.latency_ms > 0)
            await delay(misbehave.latency_ms);
        const fault = trouble.next(path, text ?? '');
        const ofItem = fault?.item !== undefined && batch ? fault : null;
        const spoils = troubleOf(fault);
        if (fault && !ofItem && spoils === null)
            return failCall(fault);
        if (!/^Bearer at_/.test(request.headers.authorization ?? ''))
            return failure(401, 'unauthorized', 'the key is not valid');
        const book = books.get(platform ?? '');
        if (!book)
            return failure(404, 'not_found', 'no such platform');
        if (text === null)
            return failure(413, 'payload_too_large', 'the request is too large');
        const body = bodyOf(text);
        if (!body)
            return failure(400, 'bad_request', 'the body is not a JSON object');
        if (batch) {
            const reply = answerBatch(book, body, misbehave.max_batch ?? MAX_BATCH, fault);
            const queries = body.get('queries');
            calls.queries += 'status' in reply && reply.status === 200 && Array.isArray(queries) ? queries.length : 0;
            return reply;
        }
        calls.queries++;
        const one = answerOne(book, body, null, spoils);
        return one.status === 200 ? success(one.body) : envelopeOf(one.status, one.body);
    };
    server.on('connection', (socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
    });
    await new Promise((resolve, reject) => {
        server.once('error', (error) => reject(missingError('port_unusable', `cannot listen: ${messageOf(error)}`, 'choose another --port or --host', error)));
        server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
    });
    const address = server.address();
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    return {
        baseUrl: `http://${host}:${address.port}`,
        calls,
        close: () => new Promise((resolve) => {
            server.close(() => resolve());
            for (const socket of sockets)
                socket.destroy();
        }),
    };
}
function answerOne(book, body, projection, spoils) {
    const query = body.get('query');
    if (typeof query !== 'string')
        return fault422('query', 'must be text');
    const facts = body.get('facts') ?? new Map();
    if (!isMap(facts))
        return fault422('facts', 'must be an object');
    const relations = body.get('relations') ?? new Map();
    if (!isMap(relations))
        return fault422('relations', 'must be an object');
    const wanted = body.get('projection') ?? projection;
    if (wanted !== null && !Array.isArray(wanted))
        return fault422('projection', 'must be a list');
    // No rulebook declares a relation: what is asserted in one is as undeclared as a field would be.
    const all = new Map(facts);
    for (const [name, rows] of relations)
        if (!all.has(name))
            all.set(name, rows);
    return answerQuery(book, query, all, wanted === null ? null : wanted.map(String), spoils);
}
function answerBatch(book, body, most, fault) {
    const queries = body.get('queries');
    if (!Array.isArray(queries) || queries.length === 0)
        return envelopeOf(422, fault422('queries', 'must be a list with something in it').body);
    if (queries.length > most)
        return failure(413, 'payload_too_large', `at most ${most} queries`);
    const spoils = troubleOf(fault);
    const results = queries.map((item, index) => {
        const mine = fault !== null && (fault.item ?? index) === index;
        const result = new Map([['index', BigInt(index)]]);
        const one = mine && spoils === null
            ? failItem(fault)
            : isMap(item)
                ? answerOne(book, item, body.get('projection') ?? null, mine ? spoils : null)
                : fault422('query', 'must be an object');
        if (one.status === 200)
            return result.set('status', 'ok').set('data', one.body);
        return result.set('status', 'error').set('error', one.body);
    });
    return success(new Map([
        ['platform_id', BigInt(book.platform_id)],
        ['results', results],
        ['simulated', true],
    ]));
}
/** A fault that changes an answer instead of replacing it. */
function troubleOf(fault) {
    return fault?.kind === 'wrong_schema_version' || fault?.kind === 'unavailable' ? fault.kind : null;
}
function fault422(field, message) {
    const details = [
        new Map([
            ['field', field],
            ['message', message],
        ]),
    ];
    const body = new Map([
        ['code', 'validation_error'],
        ['message', 'The request is not valid.'],
        ['details', details],
    ]);
    return { status: 422, body };
}
function success(data) {
    return {
        status: 200,
        body: new Map([
            ['ok', true],
            ['data', data],
        ]),
    };
}
function envelopeOf(status, error) {
    return {
        status,
        body: new Map([
            ['ok', false],
            ['error', error],
        ]),
    };
}
function failure(status, code, message) {
    return envelopeOf(status, new Map([
        ['code', code],
        ['message', message],
    ]));
}
function bodyOf(text) {
    try {
        const value = parseJson(text);
        return isMap(value) ? value : null;
    }
    catch {
        return null;
    }
}
async function readBody(request) {
    const chunks = [];
    let bytes = 0;
    for await (const chunk of request) {
        bytes += chunk.length;
        if (bytes <= MAX_BODY_BYTES)
            chunks.push(chunk);
    }
    return bytes > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString('utf8');
}
function send(response, reply) {
    if ('hang' in reply)
        return;
    if ('reset' in reply) {
        response.destroy();
        return;
    }
    const raw = 'raw' in reply;
    const text = raw ? reply.raw : dumpJson(reply.body, { compact: true });
    response.writeHead(reply.status, {
        'content-type': raw ? 'text/html' : 'application/json',
        'content-length': Buffer.byteLength(text),
        'x-ambertrace-simulated': 'certifies nothing',
        ...reply.headers,
    });
    if (raw && reply.cut) {
        response.write(text.slice(0, Math.floor(text.length / 2)));
        setTimeout(() => response.destroy(), 20);
    }
    else
        response.end(text);
}
