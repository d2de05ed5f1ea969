// The only file that knows the AWS SDK: single calls to one bucket, each tried once. What fails is an S3Error with the
// facts of it; what to make of that, and whether to try again, is decided elsewhere. Bodies are hashed once, and the hash
// serves the signature, the server's check on arrival, and the look at what was stored.

import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { muteSdkNotice } from '../config.ts';
import { messageOf } from '../errors.ts';
import type { S3Address } from './s3-address.ts';
import { S3Error } from './s3-fault.ts';

const CONNECT_MS = 5_000;
/** More than a worker has slots for. A call that began without one would wait for it in the time it has for an answer. */
export const SOCKETS = 128;

export interface S3Place {
  address: S3Address;
  /** Null: AWS itself. */
  endpoint: string | null;
  /** Null: as the SDK's chain finds it. */
  region: string | null;
  pathStyle: boolean;
}

export interface Body {
  bytes: Uint8Array;
  /** Hex. */
  sha256: string;
}

export interface FoundObject {
  bytes: number;
  writtenAt: number;
  /** Hex, of the whole content; null where the server does not know it. */
  sha256: string | null;
}

export interface Part {
  number: number;
  etag: string;
  sha256: string;
}

export interface Page<T> {
  found: T[];
  /** Null: the last page. */
  next: string | null;
}

/** A call: until when it may take, and who is told that bytes arrive. */
export interface Call {
  signal: AbortSignal;
  alive: () => void;
}

export class S3Objects {
  private readonly client: S3Client;
  private readonly bucket: string;
  private readonly place: S3Place;

  constructor(place: S3Place) {
    muteSdkNotice();
    this.place = place;
    this.bucket = place.address.bucket;
    this.client = new S3Client({
      ...(place.endpoint === null ? {} : { endpoint: place.endpoint }),
      ...(place.region === null ? {} : { region: place.region }),
      forcePathStyle: place.pathStyle,
      // Tried again by us, with a deadline that has a name.
      maxAttempts: 1,
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        httpAgent: { keepAlive: true, maxSockets: SOCKETS },
        httpsAgent: { keepAlive: true, maxSockets: SOCKETS },
      },
      logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    });
    // The signature covers the body by the hash that we have already.
    this.client.middlewareStack.add(
      (next) => async (args) => {
        const { ChecksumSHA256: digest, Body: body } = args.input as { ChecksumSHA256?: string; Body?: unknown };
        if (digest !== undefined && body !== undefined)
          (args.request as { headers: Record<string, string> }).headers['x-amz-content-sha256'] = hexOf(digest);
        return await next(args);
      },
      { step: 'build', name: 'bodyHash' },
    );
  }

  async put(key: string, body: Body, options: { onlyNew: boolean }, call: Call): Promise<void> {
    const command = new PutObjectCommand({
      ...this.at(key),
      ...this.encryption(),
      Body: body.bytes,
      ContentLength: body.bytes.byteLength,
      ChecksumSHA256: base64Of(body.sha256),
      ...(options.onlyNew ? { IfNoneMatch: '*' } : {}),
    });
    await run('PutObject', this.client.send(command, { abortSignal: call.signal }));
  }

  async get(key: string, range: { offset: number; length: number } | null, call: Call): Promise<Buffer> {
    const command = new GetObjectCommand({
      ...this.at(key),
      ...(range === null ? {} : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` }),
    });
    return await run(
      'GetObject',
      this.client.send(command, { abortSignal: call.signal }).then(async (answer) => {
        const chunks: Buffer[] = [];
        for await (const chunk of answer.Body as AsyncIterable<Buffer>) {
          chunks.push(chunk);
          call.alive();
        }
        const bytes = Buffer.concat(chunks);
        // A server that knows no ranges sends all.
        if (range !== null && answer.ContentRange === undefined && bytes.byteLength > range.length)
          return bytes.subarray(range.offset, range.offset + range.length);
        if (answer.ContentLength !== undefined && answer.ContentLength !== bytes.byteLength)
          throw new Error(`aborted: ${bytes.byteLength} bytes came where ${answer.ContentLength} were announced`);
        return bytes;
      }),
    );
  }

  async head(key: string, call: Call): Promise<FoundObject> {
    const command = new HeadObjectCommand({ ...this.at(key), ChecksumMode: 'ENABLED' });
    const answer = await run('HeadObject', this.client.send(command, { abortSignal: call.signal }));
    const whole = answer.ChecksumSHA256 !== undefined && !answer.ChecksumSHA256.includes('-');
    return {
      bytes: answer.ContentLength ?? 0,
      writtenAt: answer.LastModified?.getTime() ?? 0,
      sha256: whole ? hexOf(answer.ChecksumSHA256 as string) : null,
    };
  }

  async list(
    prefix: string,
    from: string | null,
    keys: number | undefined,
    call: Call,
  ): Promise<Page<{ key: string; bytes: number; writtenAt: number }>> {
    const command = new ListObjectsV2Command({
      Bucket: this.bucket,
      Prefix: prefix,
      // Others may have written names that XML cannot say.
      EncodingType: 'url',
      ...(keys === undefined ? {} : { MaxKeys: keys }),
      ...(from === null ? {} : { ContinuationToken: from }),
    });
    const answer = await run('ListObjectsV2', this.client.send(command, { abortSignal: call.signal }));
    const decode = answer.EncodingType === 'url' ? decodeKey : (key: string) => key;
    return {
      found: (answer.Contents ?? []).map((object) => ({
        key: decode(object.Key ?? ''),
        bytes: object.Size ?? 0,
        writtenAt: object.LastModified?.getTime() ?? 0,
      })),
      next: answer.IsTruncated ? (answer.NextContinuationToken ?? null) : null,
    };
  }

  async delete(key: string, call: Call): Promise<void> {
    await run('DeleteObject', this.client.send(new DeleteObjectCommand(this.at(key)), { abortSignal: call.signal }));
  }

  async createUpload(key: string, call: Call): Promise<string> {
    const command = new CreateMultipartUploadCommand({
      ...this.at(key),
      ...this.encryption(),
      ChecksumAlgorithm: 'SHA256',
    });
    const answer = await run('CreateMultipartUpload', this.client.send(command, { abortSignal: call.signal }));
    return answer.UploadId ?? '';
  }

  async uploadPart(key: string, upload: string, number: number, body: Body, call: Call): Promise<Part> {
    const command = new UploadPartCommand({
      ...this.at(key),
      UploadId: upload,
      PartNumber: number,
      Body: body.bytes,
      ContentLength: body.bytes.byteLength,
      ChecksumSHA256: base64Of(body.sha256),
    });
    const answer = await run('UploadPart', this.client.send(command, { abortSignal: call.signal }));
    return { number, etag: answer.ETag ?? '', sha256: body.sha256 };
  }

  async completeUpload(key: string, upload: string, parts: readonly Part[], call: Call): Promise<void> {
    const command = new CompleteMultipartUploadCommand({
      ...this.at(key),
      UploadId: upload,
      MultipartUpload: {
        Parts: parts.map((p) => ({ PartNumber: p.number, ETag: p.etag, ChecksumSHA256: base64Of(p.sha256) })),
      },
    });
    await run('CompleteMultipartUpload', this.client.send(command, { abortSignal: call.signal }));
  }

  async abortUpload(key: string, upload: string, call: Call): Promise<void> {
    const command = new AbortMultipartUploadCommand({ ...this.at(key), UploadId: upload });
    await run('AbortMultipartUpload', this.client.send(command, { abortSignal: call.signal }));
  }

  /** Uploads that are neither completed nor aborted. */
  async uploads(
    prefix: string,
    from: string | null,
    call: Call,
  ): Promise<Page<{ key: string; upload: string; begunAt: number }>> {
    const [keyMarker, uploadMarker] = from === null ? [] : (JSON.parse(from) as [string, string]);
    const command = new ListMultipartUploadsCommand({
      Bucket: this.bucket,
      Prefix: prefix,
      ...(keyMarker === undefined ? {} : { KeyMarker: keyMarker, UploadIdMarker: uploadMarker }),
    });
    const answer = await run('ListMultipartUploads', this.client.send(command, { abortSignal: call.signal }));
    return {
      found: (answer.Uploads ?? []).map((u) => ({
        key: u.Key ?? '',
        upload: u.UploadId ?? '',
        begunAt: u.Initiated?.getTime() ?? 0,
      })),
      next: answer.IsTruncated ? JSON.stringify([answer.NextKeyMarker, answer.NextUploadIdMarker]) : null,
    };
  }

  /** How far this machine's clock is ahead of the server's, as its answers tell; 0 before the first. */
  get clockAheadMs(): number {
    return -(this.client.config.systemClockOffset ?? 0);
  }

  close(): void {
    this.client.destroy();
  }

  private at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.bucket, Key: key };
  }

  private encryption(): { ServerSideEncryption?: 'AES256' | 'aws:kms'; SSEKMSKeyId?: string } {
    const { sse, kmsKey } = this.place.address;
    return {
      ...(sse === null ? {} : { ServerSideEncryption: sse }),
      ...(kmsKey === null ? {} : { SSEKMSKeyId: kmsKey }),
    };
  }
}

async function run<T>(operation: string, sending: Promise<T>): Promise<T> {
  try {
    return await sending;
  } catch (error) {
    throw factsOf(operation, error);
  }
}

function factsOf(operation: string, error: unknown): S3Error {
  const told = error as {
    name?: string;
    code?: string;
    Region?: string;
    $response?: { headers?: Record<string, string>; statusCode?: number };
    $metadata?: { httpStatusCode?: number };
  };
  const status = told.$metadata?.httpStatusCode ?? told.$response?.statusCode ?? null;
  const named = error instanceof S3ServiceException || status !== null;
  return new S3Error(
    {
      operation,
      code: (named ? told.name : (told.code ?? told.name)) ?? 'Error',
      status,
      message: messageOf(error).replace(/\s+/g, ' ').trim().slice(0, 500),
      region: told.$response?.headers?.['x-amz-bucket-region'] ?? told.Region ?? null,
    },
    error,
  );
}

function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch {
    return key;
  }
}

function base64Of(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64');
}

function hexOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex');
}
