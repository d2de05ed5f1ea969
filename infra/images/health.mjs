// Asks one address and says by its exit code whether the answer is 200: the health checks of images without curl.
// usage: health.mjs http://HOST:PORT/PATH | unix:SOCKET:/PATH

import http from 'node:http';

const [, socketPath, path] = /^unix:(.+):(\/.*)$/.exec(process.argv[2] ?? '') ?? [];
const asked = http.get(socketPath ? { socketPath, path } : (process.argv[2] ?? ''), { timeout: 4_000 }, (answer) => {
  let text = '';
  answer.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  answer.on('end', () => {
    process.stdout.write(`${answer.statusCode} ${text.slice(0, 500)}\n`);
    process.exit(answer.statusCode === 200 ? 0 : 1);
  });
});
asked.on('timeout', () => asked.destroy(new Error('no answer')));
asked.on('error', (error) => {
  process.stdout.write(`${error.message}\n`);
  process.exit(1);
});
