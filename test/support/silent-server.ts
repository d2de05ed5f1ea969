// A server that takes connections and never answers: a Redis, an engine, a store or a platform that hangs.

import net, { type AddressInfo } from 'node:net';

export interface SilentServer {
  port: number;
  /** Connections so far. */
  readonly asked: number;
  close(): void;
}

export async function startSilent(): Promise<SilentServer> {
  let asked = 0;
  const open = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    asked++;
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get asked() {
      return asked;
    },
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
