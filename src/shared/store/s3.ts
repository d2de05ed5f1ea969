// S3 as the store: an object a key, below the address's prefix. A put is one PutObject, or an upload in parts that is
// aborted when it fails; it counts only when the server, asked again, has that object with that size and hash. Throws
// FarmError (exit 3) with the server's code and the next step once patience is at its end.

import { randomBytes } from 'node:crypto';
import pLimit, { type LimitFunction } from 'p-limit';
import { sha256Away } from './content.ts';
import { formatS3Address } from './s3-address.ts';
import { type Body, type Call, type Page, S3Objects, type S3Place, SOCKETS } from './s3-client.ts';
import { mayPass, S3Error, type S3FaultKind, s3FarmError, s3FaultKind } from './s3-fault.ts';
import { PATIENCE, type Patience, persist } from './s3-patience.ts';
import { type S3Settings, s3PlaceOf } from './s3-place.ts';
import type { ProbeReport, Store, StoredObject, UnfinishedPut } from './store.ts';
import { keySegments } from './store-key.ts';

export interface S3Options {
  patience?: Patience;
  /** Larger objects are sent in parts of this size. */
  partBytes?: number;
  /** Keys in a page of a list; the server's own number if none is given. */
  pageKeys?: number;
}

/** Repeating one part is cheap, ten thousand of them (the most that S3 takes) are 160 GB. */
const PART_BYTES = 16 * 1024 * 1024;
const PARTS_AT_ONCE = 4;
const PROBE_GIVE_UP_MS = 4_000;
/** A server refuses requests that are further off than 15 minutes; the SDK corrects what it sees. */
const CLOCK_WARN_MS = 60_000;

export async function openS3Store(text: string, settings: S3Settings, options: S3Options = {}): Promise<Store> {
  return new S3Store(s3PlaceOf(text, settings), options);
}

/** One client a place and process: credentials are resolved once, and sockets are shared. */
const clients = new Map<string, { objects: S3Objects; turn: LimitFunction; users: number }>();

class S3Store implements Store {
  readonly address: string;
  private readonly objects: S3Objects;
  private readonly turn: LimitFunction;
  private readonly client: string;
  private readonly place: S3Place;
  private readonly options: S3Options;
  private readonly prefix: string;
  /** For messages. */
  private readonly where: string;
  private readonly patience: Patience;
  private readonly partBytes: number;
  private readonly pageKeys: number | undefined;
  private closed = false;

  constructor(place: S3Place, options: S3Options) {
    this.place = place;
    this.options = options;
    this.address = formatS3Address(place.address);
    this.where = place.endpoint === null ? this.address : `${this.address} at ${place.endpoint}`;
    this.prefix = place.address.prefix;
    this.client = JSON.stringify(place);
    const lent = clients.get(this.client) ?? { objects: new S3Objects(place), turn: pLimit(SOCKETS), users: 0 };
    lent.users++;
    clients.set(this.client, lent);
    this.objects = lent.objects;
    this.turn = lent.turn;
    this.patience = options.patience ?? PATIENCE;
    this.partBytes = options.partBytes ?? PART_BYTES;
    this.pageKeys = options.pageKeys;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const name = this.nameOf(key);
    if (bytes.byteLength > this.partBytes) return await this.putParts(name, bytes);
    const body = await bodyOf(bytes);
    await this.persist(bytes.byteLength, async (call) => {
      await this.objects.put(name, body, { onlyNew: false }, call);
      call.alive();
      await this.confirm(name, body, call);
    });
  }

  async putNew(key: string, bytes: Uint8Array): Promise<boolean> {
    const name = this.nameOf(key);
    const body = await bodyOf(bytes);
    // Where the server does not know the condition this look is all there is, and the ledger's lease fences the rest.
    if ((await this.head(key)) !== null) return false;
    const put = async (onlyNew: boolean): Promise<boolean> =>
      (await this.unless('taken', bytes.byteLength, async (call) => {
        await this.objects.put(name, body, { onlyNew }, call);
        call.alive();
        await this.confirm(name, body, call);
        return true;
      })) ?? false;
    try {
      return await put(true);
    } catch (error) {
      if (!isUnknownCondition(error)) throw error;
      return await put(false);
    }
  }

  async get(key: string, range?: { offset: number; length: number }): Promise<Buffer | null> {
    const name = this.nameOf(key);
    // A range of nothing cannot be asked for.
    if (range?.length === 0) return (await this.head(key)) === null ? null : Buffer.alloc(0);
    return await this.unless('absent', 0, async (call) => {
      try {
        return await this.objects.get(name, range ?? null, call);
      } catch (error) {
        if (error instanceof S3Error && s3FaultKind(error.failure) === 'beyond') return Buffer.alloc(0);
        throw error;
      }
    });
  }

  async head(key: string): Promise<StoredObject | null> {
    const name = this.nameOf(key);
    const found = await this.unless('absent', 0, (call) => this.headOrReason(name, call));
    return found === null ? null : { bytes: found.bytes, writtenAt: found.writtenAt };
  }

  async *list(prefix: string): AsyncIterable<{ key: string } & StoredObject> {
    for await (const object of this.pages((from, call) =>
      this.objects.list(this.prefix + prefix, from, this.pageKeys, call),
    )) {
      const key = object.key.slice(this.prefix.length);
      // What consoles put where a folder would be.
      if (key !== '') yield { key, bytes: object.bytes, writtenAt: object.writtenAt };
    }
  }

  async *unfinishedPuts(): AsyncIterable<UnfinishedPut> {
    for await (const { key, upload, begunAt } of this.pages((from, call) =>
      this.objects.uploads(this.prefix, from, call),
    )) {
      const remove = async (): Promise<void> => {
        await this.unless('upload_gone', 0, (call) => this.objects.abortUpload(key, upload, call));
      };
      yield { name: `${key.slice(this.prefix.length)} (upload ${upload})`, begunAt, remove };
    }
  }

  async delete(key: string): Promise<void> {
    const name = this.nameOf(key);
    await this.unless('absent', 0, (call) => this.objects.delete(name, call));
  }

  /** Somebody waits for the answer: a server that is not there is said to be so sooner than to a run at work. */
  async probe(): Promise<ProbeReport> {
    const giveUpMs = Math.min(this.patience.giveUpMs, PROBE_GIVE_UP_MS);
    const hasty = new S3Store(this.place, { ...this.options, patience: { ...this.patience, giveUpMs } });
    try {
      return await hasty.putAndLook();
    } finally {
      await hasty.close();
    }
  }

  private async putAndLook(): Promise<ProbeReport> {
    const key = `probe/${process.pid}-${randomBytes(8).toString('hex')}`;
    const bytes = randomBytes(64);
    await this.put(key, bytes);
    try {
      const report = await this.tryOut(key, bytes);
      await this.delete(key);
      return report;
    } catch (error) {
      await this.delete(key).catch(() => {});
      throw error;
    }
  }

  async close(): Promise<void> {
    const lent = clients.get(this.client);
    if (this.closed || lent === undefined) return;
    this.closed = true;
    lent.users--;
    if (lent.users > 0) return;
    clients.delete(this.client);
    lent.objects.close();
  }

  private async tryOut(key: string, bytes: Buffer): Promise<ProbeReport> {
    const conditionalPut = await this.refusesSecond(this.nameOf(key), await bodyOf(bytes));
    const back = await this.get(key);
    const listed: string[] = [];
    for await (const { key: found } of this.list(key)) listed.push(found);
    if (!back?.equals(bytes)) throw this.lies('GetObject', 'what was stored is not what comes back');
    if (!listed.includes(key)) throw this.lies('ListObjectsV2', 'what was stored is not listed');
    return { conditionalPut, warnings: this.clockWarnings() };
  }

  private async refusesSecond(name: string, body: Body): Promise<boolean> {
    try {
      const put = (call: Call): Promise<boolean> =>
        this.objects.put(name, body, { onlyNew: true }, call).then(() => true);
      return (await this.unless('taken', 0, put)) === null;
    } catch (error) {
      if (isUnknownCondition(error)) return false;
      throw error;
    }
  }

  private clockWarnings(): string[] {
    const ahead = this.objects.clockAheadMs;
    if (Math.abs(ahead) < CLOCK_WARN_MS) return [];
    const minutes = Math.round(Math.abs(ahead) / 60_000);
    return [
      `this machine’s clock is ${minutes} min ${ahead > 0 ? 'ahead of' : 'behind'} that of the store ${this.where}; requests are signed by the store’s`,
    ];
  }

  private async putParts(name: string, bytes: Uint8Array): Promise<void> {
    const upload = await this.persist(0, (call) => this.objects.createUpload(name, call));
    try {
      const limit = pLimit(PARTS_AT_ONCE);
      const count = Math.ceil(bytes.byteLength / this.partBytes);
      const sending = Array.from({ length: count }, (_, i) =>
        limit(async () => {
          const body = await bodyOf(bytes.subarray(i * this.partBytes, (i + 1) * this.partBytes));
          return await this.persist(body.bytes.byteLength, (call) =>
            this.objects.uploadPart(name, upload, i + 1, body, call),
          );
        }),
      );
      const parts = await Promise.all(sending).catch(async (error: unknown) => {
        limit.clearQueue();
        await Promise.allSettled(sending);
        throw error;
      });
      // Said twice where the first answer is lost: the upload is then gone, and the object there.
      await this.unless('upload_gone', 0, (call) => this.objects.completeUpload(name, upload, parts, call));
      await this.persist(0, (call) => this.confirm(name, { bytes, sha256: null }, call));
    } catch (error) {
      await this.unless('upload_gone', 0, (call) => this.objects.abortUpload(name, upload, call)).catch(() => {});
      throw error;
    }
  }

  /** Throws a failure that may pass unless the object is there as it was sent. */
  private async confirm(name: string, sent: { bytes: Uint8Array; sha256: string | null }, call: Call): Promise<void> {
    const found = await this.headOrReason(name, call).catch((error: unknown) => {
      if (error instanceof S3Error && s3FaultKind(error.failure) === 'absent') return null;
      throw error;
    });
    const same =
      found !== null &&
      found.bytes === sent.bytes.byteLength &&
      (found.sha256 === null || sent.sha256 === null || found.sha256 === sent.sha256);
    if (same) return;
    throw unstored(
      'PutObject',
      found === null ? `${name} is not there` : `${name} is another object of ${found.bytes} bytes`,
    );
  }

  /** An answer to HEAD has no body, hence no code: where that leaves the reason open, a read says it. */
  private async headOrReason(name: string, call: Call): ReturnType<S3Objects['head']> {
    try {
      return await this.objects.head(name, call);
    } catch (error) {
      if (error instanceof S3Error && isUnsaid(error)) await this.objects.get(name, { offset: 0, length: 1 }, call);
      throw error;
    }
  }

  private lies(operation: string, message: string): Error {
    return s3FarmError(this.where, unstored(operation, message));
  }

  private async *pages<T>(read: (from: string | null, call: Call) => Promise<Page<T>>): AsyncIterable<T> {
    for (let from: string | null = null; ; ) {
      const page: Page<T> = await this.persist(0, (call) => read(from, call));
      yield* page.found;
      if (page.next === null) return;
      from = page.next;
    }
  }

  /** As `persist`, with null for a failure of that kind. */
  private async unless<T>(kind: S3FaultKind, sent: number, attempt: (call: Call) => Promise<T>): Promise<T | null> {
    return await this.persist(sent, async (call) => {
      try {
        return await attempt(call);
      } catch (error) {
        if (error instanceof S3Error && s3FaultKind(error.failure) === kind) return null;
        throw error;
      }
    });
  }

  private async persist<T>(sent: number, attempt: (call: Call) => Promise<T>): Promise<T> {
    try {
      return await persist(this.patience, this.turn, sent, attempt);
    } catch (error) {
      if (error instanceof S3Error) throw s3FarmError(this.where, error);
      throw error;
    }
  }

  private nameOf(key: string): string {
    return this.prefix + keySegments(key).join('/');
  }
}

async function bodyOf(bytes: Uint8Array): Promise<Body> {
  return { bytes, sha256: await sha256Away(bytes) };
}

function unstored(operation: string, message: string): S3Error {
  return new S3Error({ operation, code: 'NotStored', status: null, message, region: null });
}

/** A refusal whose reason would stand in the answer's body. */
function isUnsaid({ failure }: S3Error): boolean {
  const kind = s3FaultKind(failure);
  return failure.status !== null && kind !== 'absent' && !mayPass(kind);
}

/** A server that does not know If-None-Match says so (501), or that it cannot take it (400). */
function isUnknownCondition(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof S3Error && (cause.failure.status === 501 || cause.failure.code === 'NotImplemented');
}
