// Stands between workers and an engine whose socket means root: passes on what our own driver asks for, containers that are
// boxes and nothing else, and refuses the rest with its reason. A worker that is taken over then has hardened boxes to
// start, and no machine. Bytes of an attached box are passed on as they come, to their end in either direction.

import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { messageOf } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { engineAddress } from '../sandbox/engine-address.ts';
import { seccompProfile } from '../sandbox/seccomp.ts';
import { containerOf, MADE_LABEL } from './body.ts';
import { type Asked, type Judged, judge } from './rules.ts';

export interface EngineGateOptions {
  /** The engine's address; null: the machine's own. */
  dockerHost: string | null;
  log: Log;
}

/** dockerode repeats a container's whole description in the address. */
const HEADER_BYTES = 1024 * 1024;
const BODY_BYTES = 1024 * 1024;
const ASK_MS = 15_000;
/** Names and ids that are remembered; of others the engine is asked. */
const REMEMBERED = 10_000;

const inspectedSchema = z.object({ Config: z.object({ Labels: z.record(z.string(), z.string()).nullish() }) });
const createdSchema = z.object({ Id: z.string() });

interface Answer {
  status: number;
  body: string;
}

export class EngineGate {
  readonly #options: EngineGateOptions;
  readonly #seccomp = seccompProfile();
  readonly #server: http.Server;
  readonly #sockets = new Set<Duplex>();
  /** What was made here, by name and by id. */
  readonly #made = new Map<string, string>();

  constructor(options: EngineGateOptions) {
    this.#options = options;
    this.#server = http.createServer({ maxHeaderSize: HEADER_BYTES, requestTimeout: 0, keepAliveTimeout: 75_000 });
    this.#server.on('request', (request, response) => void this.#serve(request, response));
    this.#server.on('upgrade', (request, socket, head) => void this.#serveStream(request, socket, head));
    this.#server.on('connection', (socket) => this.#keep(socket));
  }

  /** A socket's path, or a port of loopback. */
  async listen(at: { path: string } | { host: string; port: number }): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(at, () => resolve());
    });
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const judged = judge(request.method ?? '', request.url ?? '');
    try {
      if (judged.asked.kind === 'create') return await this.#create(judged, judged.asked.name, request, response);
      const why = await this.#refusal(judged.asked);
      if (why !== null) return this.#refuse(request, response, why);
      const onward = this.#ask(request.method ?? '', judged.target, judged.withBody ? request.headers : {});
      // A caller that is gone waits for nothing any more.
      response.on('close', () => onward.destroy());
      onward.on('error', (error) => fail(response, error));
      onward.on('response', (answer) => {
        answer.on('error', (error) => fail(response, error));
        response.writeHead(answer.statusCode ?? 502, headersOf(answer));
        response.flushHeaders();
        answer.pipe(response);
      });
      if (judged.withBody) request.pipe(onward);
      else {
        request.resume();
        onward.end();
      }
    } catch (error) {
      fail(response, error);
    }
  }

  async #create(
    judged: Judged,
    name: string | null,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const text = await bodyOf(request);
    if (text === null) return this.#refuse(request, response, 'the body is too long');
    const container = containerOf(text, name, this.#seccomp);
    if (container.status === 'refused') return this.#refuse(request, response, container.why);
    const answer = await this.#answer('POST', judged.target, container.body);
    if (answer.status === 201) {
      const { Id } = createdSchema.parse(JSON.parse(answer.body));
      for (const known of [Id, ...(name === null ? [] : [name])]) this.#remember(known, container.made);
    }
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  }

  /** Only boxes are attached to: their first byte in, their last byte out. */
  async #serveStream(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const judged = judge(request.method ?? '', request.url ?? '');
    const attach = judged.asked.kind === 'container' && /\/attach(\?|$)/.test(judged.target);
    const why = attach ? await this.#refusal(judged.asked).catch(messageOf) : 'no such stream';
    if (why !== null) {
      this.#options.log.warn({ method: request.method, url: request.url?.slice(0, 200), why }, 'refused');
      const body = JSON.stringify({ message: `engine gate: ${why}` });
      client.end(
        `HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
      return;
    }
    const first = await afterBody(client, head, Number(request.headers['content-length'] ?? 0));
    const onward = this.#ask('POST', judged.target, { connection: 'Upgrade', upgrade: 'tcp' });
    onward.on('error', () => client.destroy());
    client.on('close', () => onward.destroy());
    // Refused by the engine itself.
    onward.on('response', (answer) => {
      client.write(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\nconnection: close\r\n\r\n`);
      answer.pipe(client);
    });
    onward.on('upgrade', (answer, engine, said) => {
      this.#keep(engine);
      client.write(`HTTP/1.1 101 ${answer.statusMessage}\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n`);
      if (said.length > 0) client.write(said);
      if (first.length > 0) engine.write(first);
      join(client, engine);
    });
    onward.end();
  }

  /** Why not; null if it may go on. */
  async #refusal(asked: Asked): Promise<string | null> {
    switch (asked.kind) {
      case 'refused':
        return asked.why;
      case 'plain':
      case 'create':
        return null;
      case 'image': {
        const labels = await this.#labels(`/images/${asked.image}/json`);
        return labels === null || 'rollout-farm.box' in labels ? null : 'it is no image of a box';
      }
      case 'container': {
        const made = this.#made.get(asked.container);
        if (made !== undefined) return asked.needs === 'box' && made !== 'box' ? 'it is not to be started' : null;
        const labels = await this.#labels(`/containers/${asked.container}/json`);
        // Not there: the engine says so itself.
        if (labels === null) return null;
        const kind = labels[MADE_LABEL];
        if (asked.needs === 'removable' && (kind !== undefined || 'rollout-farm.farm' in labels)) return null;
        if (kind === undefined) return 'it is no container of ours';
        return asked.needs === 'box' && kind !== 'box' ? 'it is not to be started' : null;
      }
    }
  }

  #remember(known: string, made: string): void {
    this.#made.set(known, made);
    if (this.#made.size > REMEMBERED) this.#made.delete(this.#made.keys().next().value as string);
  }

  /** Null: there is no such thing. */
  async #labels(target: string): Promise<Record<string, string> | null> {
    const { status, body } = await this.#answer('GET', target, null);
    if (status === 404) return null;
    if (status !== 200) throw new Error(`the engine answers ${status}`);
    return inspectedSchema.parse(JSON.parse(body)).Config.Labels ?? {};
  }

  #answer(method: string, target: string, body: string | null): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers =
        body === null ? {} : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
      const onward = this.#ask(method, target, headers);
      onward.setTimeout(ASK_MS, () => onward.destroy(new Error(`the engine does not answer within ${ASK_MS} ms`)));
      onward.on('error', reject);
      onward.on('response', (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        answer.on('error', reject).on('end', () => resolve({ status: answer.statusCode ?? 0, body: text }));
      });
      onward.end(body ?? undefined);
    });
  }

  #ask(method: string, path: string, headers: http.IncomingHttpHeaders): http.ClientRequest {
    const address = engineAddress(this.#options.dockerHost);
    const at: net.NetConnectOpts = 'socketPath' in address ? { path: address.socketPath } : address;
    const kept = ['content-type', 'content-length', 'transfer-encoding', 'connection', 'upgrade'];
    const passed = Object.fromEntries(
      kept.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
    );
    return http.request({
      method,
      path,
      headers: { host: 'engine', ...passed },
      // A box's stdin may end before its output does.
      createConnection: () => net.connect({ ...at, allowHalfOpen: true }),
    });
  }

  #refuse(request: IncomingMessage, response: ServerResponse, why: string): void {
    this.#options.log.warn({ method: request.method, url: request.url?.slice(0, 200), why }, 'refused');
    request.resume();
    response
      .writeHead(403, { 'content-type': 'application/json' })
      .end(JSON.stringify({ message: `engine gate: ${why}` }));
  }
}

/** dockerode sends the query as a body too, before the stream begins: those bytes are nobody's stdin. Gives what came after them. */
async function afterBody(client: Duplex, head: Buffer, length: number): Promise<Buffer> {
  const chunks = [head];
  let size = head.length;
  while (size < length) {
    const chunk = client.read() as Buffer | null;
    if (chunk === null) {
      if (client.readableEnded || client.destroyed) break;
      await new Promise<void>((resolve) => {
        client.once('readable', resolve);
        client.once('close', resolve);
      });
      continue;
    }
    chunks.push(chunk);
    size += chunk.length;
  }
  return Buffer.concat(chunks).subarray(length);
}

function join(one: Duplex, other: Socket | Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.pipe(to);
    from.on('close', () => to.destroy());
    from.on('error', () => to.destroy());
  }
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
  response
    .writeHead(502, { 'content-type': 'application/json' })
    .end(JSON.stringify({ message: `engine gate: the engine cannot be asked: ${messageOf(error)}` }));
}

/** What concerns one connection stays on it. */
function headersOf(answer: IncomingMessage): http.OutgoingHttpHeaders {
  const { connection, 'keep-alive': keepAlive, 'transfer-encoding': encoding, ...rest } = answer.headers;
  return rest;
}

async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
