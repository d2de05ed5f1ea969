// The least that a gateway could do: reads the same requests over the same HTTP, and answers as many bytes. What is
// slower than this is our own work.
import { createServer } from 'node:http';
const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
        const body = Buffer.concat(chunks);
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
        response.end(body);
    });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object')
        process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit(0));
