// The baseline of the store's throughput: the SDK's PutObject with its own defaults, and nothing else; of a folder, a file
// that is written.

import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { muteSdkNotice, readConfig } from '../shared/config.ts';
import { isS3Address } from '../shared/store/s3-address.ts';
import { s3PlaceOf } from '../shared/store/s3-place.ts';

export interface BarePut {
  put(name: string, bytes: Uint8Array): Promise<void>;
  close(): void;
}

export async function openBarePut(address: string): Promise<BarePut> {
  if (!isS3Address(address)) {
    await mkdir(address, { recursive: true });
    return { put: (name, bytes) => writeFile(path.join(address, name), bytes), close: () => {} };
  }
  const { address: where, endpoint, region, pathStyle } = s3PlaceOf(address, readConfig().s3);
  muteSdkNotice();
  const client = new S3Client({
    ...(endpoint === null ? {} : { endpoint }),
    ...(region === null ? {} : { region }),
    forcePathStyle: pathStyle,
    requestHandler: { httpAgent: { maxSockets: 128 }, httpsAgent: { maxSockets: 128 } },
  });
  return {
    put: async (name, bytes) => {
      await client.send(new PutObjectCommand({ Bucket: where.bucket, Key: where.prefix + name, Body: bytes }));
    },
    close: () => client.destroy(),
  };
}
