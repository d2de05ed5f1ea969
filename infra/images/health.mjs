// Asks one address and says by its exit code whether the answer is 200: the health checks of images without curl.
// usage: health.mjs http://HOST:PORT/PATH | unix:SOCKET:/PATH

import http from 'node:http';

const WITHIN_MS = 4_000;
const address = process.argv[2] ?? '';
const [, socketPath, path] = /^unix:(.+):(\/.*)$/.exec(address) ?? [];
const { hostname, port, pathname } = socketPath ? {} : new URL(address);
const where = socketPath ? { socketPath, path } : { hostname, port, path: pathname };
const end = (text, code) => {
  process.stdout.write(`${text}\n`);
  process.exit(code);
};
setTimeout(() => end('no answer', 1), WITHIN_MS).unref();
const asked = http.get(where, (answer) => {
  let text = '';
  answer.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  answer.on('end', () => end(`${answer.statusCode} ${text.slice(0, 500)}`, answer.statusCode === 200 ? 0 : 1));
});
asked.on('error', (error) => end(error.message, 1));
