// A port of this machine that nobody listens on, and that nobody takes before it is bound: below those that the system deals
// out to whoever connects or binds to 0, and no other process of the tests tries the same ones.

import net from 'node:net';

const [FIRST, LAST] = [12_000, 22_000];
const SPREAD = 37;
let next = (process.pid * SPREAD) % (LAST - FIRST);

/** With those so far above it, as a cluster's bus is. */
export async function freePort(...above: number[]): Promise<number> {
  for (let tries = 0; tries < LAST - FIRST; tries++) {
    const port = FIRST + next;
    next = (next + 1) % (LAST - FIRST);
    const free = await Promise.all([0, ...above].map((more) => bindable(port + more)));
    if (free.every(Boolean)) return port;
  }
  throw new Error(`no port is free from ${FIRST} to ${LAST}`);
}

function bindable(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
