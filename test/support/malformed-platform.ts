// A platform whose every answer is malformed, by the numbers in what it is asked. It speaks TCP, not HTTP.

import net, { type AddressInfo, type Socket } from 'node:net';
import { malformedCase } from './malformed-answers.ts';
import { http } from './malformed-wire.ts';

export interface MalformedServer {
  baseUrl: string;
  /** Paths that no call has: a redirect was followed. */
  strayed: string[];
  close(): Promise<void>;
}

/** Answers by the numbers in the queries: `case N item M`. */
export async function startMalformed(): Promise<MalformedServer> {
  const sockets = new Set<Socket>();
  const strayed: string[] = [];
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    let text = '';
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece;
      const end = text.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
      if (end === -1 || text.length < end + 4 + length) return;
      const request = text;
      text = '';
      answer(socket, request.split(' ')[1] as string, request.slice(end));
    });
  });
  function answer(socket: Socket, path: string, body: string): void {
    const asked = [...body.matchAll(/"age": ?"case (\d+) item (\d+)"/g)].map((match) => [
      Number(match[1]),
      Number(match[2]),
    ]);
    const call = /^\/api\/v1\/platforms\/1\/(query|query-batch)$/.exec(path)?.[1];
    if (call === undefined || asked.length === 0) return void strayed.push(path);
    const one = malformedCase((asked[0] as number[])[0] as number);
    if (one.single && call === 'query-batch') socket.write(http(404, 'no such path'));
    else
      one.play(
        socket,
        asked.map(([, item]) => item as number),
      );
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1_024, resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    strayed,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
