// A request's body, bounded in size, in time and in what it inflates to; its bytes are counted against the gateway's
// memory for as long as the request lives. Refused: more than the bound (413), a sender that stalls (408), a sender that
// goes away, encodings that we do not read (415), bytes that are not what they say.

import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { Admission } from './admission.ts';
import { busy, HttpProblem } from './problem.ts';

export interface BodyBounds {
  maxBytes: number;
  /** Between two pieces. */
  idleMs: number;
  /** From the first to the last. */
  wholeMs: number;
}

/** Bodies that are inflated at once: each may grow to the bound. */
const inflating = new Admission(2);
const INFLATE = { gzip: promisify(gunzip), 'x-gzip': promisify(gunzip), deflate: promisify(inflate) } as const;

/** The bodies of one class of calls, and the memory that they share. */
export class Bodies {
  readonly bounds: BodyBounds;
  readonly memory: Admission;

  constructor(bounds: BodyBounds, memory: Admission) {
    this.bounds = bounds;
    this.memory = memory;
  }

  /** Reads, and holds the memory until `use` is over. `hold`: waits for memory that long instead of refusing (429). */
  async with<T>(
    request: IncomingMessage,
    gone: AbortSignal,
    use: (bytes: Buffer) => Promise<T>,
    hold?: AbortSignal,
  ): Promise<T> {
    let taken = 0;
    const take = async (bytes: number): Promise<void> => {
      // Who was let in once goes on: two bodies that wait for each other's room would wait for ever.
      if (hold && taken > 0) this.memory.add(bytes);
      else if (hold) await this.memory.take(bytes, hold);
      else if (!this.memory.tryTake(bytes)) throw busy('the gateway holds as many requests as its memory allows', 1);
      taken += bytes;
    };
    try {
      const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
      if (encoding !== 'identity' && !isKnown(encoding))
        throw new HttpProblem(
          415,
          'encoding_unknown',
          'the body has an encoding that is not read here',
          'send it plain or as gzip',
        );
      const length = Number(request.headers['content-length'] ?? 0);
      if (length > this.bounds.maxBytes) throw tooLarge(this.bounds);
      if (length > 0) await take(length);
      const raw = await collect(request, this.bounds, gone, (sum) =>
        sum > taken ? take(Math.max(sum - taken, 64 * 1024)) : null,
      );
      if (encoding === 'identity' || !isKnown(encoding)) return await use(raw);
      const bytes = await inflated(raw, encoding, this.bounds, gone);
      await take(bytes.length);
      return await use(bytes);
    } finally {
      this.memory.give(taken);
    }
  }
}

function isKnown(encoding: string): encoding is keyof typeof INFLATE {
  return Object.hasOwn(INFLATE, encoding);
}

function collect(
  request: IncomingMessage,
  bounds: BodyBounds,
  signal: AbortSignal,
  grown: (sum: number) => Promise<void> | null,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let sum = 0;
    const late = (): void =>
      end(
        new HttpProblem(408, 'body_slow', 'the body did not arrive in time', 'send it faster, or in smaller requests'),
      );
    const whole = setTimeout(late, bounds.wholeMs);
    let idle = setTimeout(late, bounds.idleMs);
    const end = (error: unknown): void => {
      clearTimeout(whole);
      clearTimeout(idle);
      signal.removeEventListener('abort', gone);
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', end);
      // A listener stays: a connection that breaks later must not be an error without one.
      request.on('error', () => {});
      if (error) reject(error);
      else resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    };
    const gone = (): void => end(signal.reason);
    const onData = (chunk: Buffer): void => {
      clearTimeout(idle);
      sum += chunk.length;
      if (sum > bounds.maxBytes) {
        end(tooLarge(bounds));
        return;
      }
      chunks.push(chunk);
      const room = grown(sum);
      if (room === null) {
        idle = setTimeout(late, bounds.idleMs);
        return;
      }
      request.pause();
      room.then(() => {
        idle = setTimeout(late, bounds.idleMs);
        request.resume();
      }, end);
    };
    const onEnd = (): void => end(null);
    const onClose = (): void => end(new HttpProblem(400, 'body_cut', 'the body ends before its length'));
    if (signal.aborted) {
      gone();
      return;
    }
    signal.addEventListener('abort', gone, { once: true });
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', end);
  });
}

async function inflated(
  raw: Buffer,
  encoding: keyof typeof INFLATE,
  bounds: BodyBounds,
  signal: AbortSignal,
): Promise<Buffer> {
  await inflating.take(1, signal);
  try {
    return await INFLATE[encoding](raw, { maxOutputLength: bounds.maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bounds);
    throw new HttpProblem(400, 'body_encoding', `the body is not what its encoding says (${encoding})`);
  } finally {
    inflating.give(1);
  }
}

function tooLarge({ maxBytes }: BodyBounds): HttpProblem {
  return new HttpProblem(
    413,
    'body_too_large',
    `the body is larger than ${Math.floor(maxBytes / 2 ** 20)} MB, as it comes or inflated`,
    'send it in several requests',
  );
}

/** Takes what a refused sender is still sending, for a while, so that it reads the answer instead of a reset. */
export function discard(request: IncomingMessage, maxMs: number): Promise<void> {
  if (request.readableEnded || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(done, maxMs);
    function done(): void {
      clearTimeout(timer);
      resolve();
    }
    request.once('end', done).once('close', done).once('error', done);
    request.resume();
  });
}
