// A stub of a platform in a process of its own: every call takes the same time, whatever it carries, and what it was
// asked is counted. It certifies everything; only `bench` talks to it.
import { createServer } from 'node:http';
import { z } from 'zod';
const latencyMs = Number(process.argv[2] ?? 50);
/** `single`: an older server, without the batch path. */
const single = process.argv[3] === 'single';
const bodySchema = z.object({ queries: z.array(z.unknown()).optional() });
let items = 0;
let calls = 0;
const DATA = {
    answer: 'permit',
    decision: 'permit',
    proof_checked: true,
    proof_summary: 'stub',
    explanation: {
        schema_version: 1,
        symbolic_trace: { rules: [] },
        certified_fact_summary: { accepted: 1, emitted: 1, rejected: 0, witness_invalid: 0 },
        confidence: { overall: 1 },
    },
};
const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
        const reply = (body) => {
            response.writeHead(200, { 'content-type': 'application/json' });
            response.end(JSON.stringify(body));
        };
        if (request.url === '/counts') {
            reply({ items, calls });
            items = 0;
            calls = 0;
            return;
        }
        if (single && request.url?.endsWith('/query-batch')) {
            response.writeHead(404, { 'content-type': 'text/plain' });
            response.end('no such path');
            return;
        }
        const { queries } = bodySchema.parse(JSON.parse(Buffer.concat(chunks).toString() || '{}'));
        calls++;
        items += queries?.length ?? 1;
        const data = queries ? { results: queries.map((_, index) => ({ index, status: 'ok', data: DATA })) } : DATA;
        setTimeout(() => reply({ ok: true, data }), latencyMs);
    });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object')
        process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit(0));
