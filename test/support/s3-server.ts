// Real S3 servers of the test's own, each with a bucket: versitygw on a folder, which can be killed and started again on
// it, and moto's server in memory. Gone when the test is over.

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { ROOT } from './built.ts';
import { freePort } from './port.ts';
import { until } from './until.ts';

export const KEYS = { AWS_ACCESS_KEY_ID: 'farm-test-key', AWS_SECRET_ACCESS_KEY: 'farm-test-secret-of-40-characters' };
/** Nobody asks a cloud's address for credentials from here. */
export const NO_CLOUD = {
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
};
export const REGION = 'us-east-1';

export interface TestS3 {
  readonly endpoint: string;
  readonly port: number;
  readonly bucket: string;
  /** What a command needs to reach it. */
  readonly env: Record<string, string>;
  /** `kill -9`; resolves when it is gone. */
  kill(): Promise<void>;
  /** Again, on the same folder and port; resolves when it answers. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface Versitygw extends TestS3 {
  /** Where the objects lie. */
  readonly folder: string;
  /** Another pair of keys; it has no right on the bucket. */
  addUser(access: string, secret: string): Promise<void>;
}

export function whereIs(name: string): string {
  return execFileSync(path.join(ROOT, 'infra/s3/build.sh'), ['--where', name], { encoding: 'utf8' }).trim();
}

/** For this process's own clients, as for a command's. */
export function useKeys(env: Record<string, string> = KEYS): void {
  for (const name of ['AWS_SESSION_TOKEN', 'AWS_PROFILE', 'AWS_REGION', 'AWS_DEFAULT_REGION', 'S3_ENDPOINT'])
    delete process.env[name];
  Object.assign(process.env, NO_CLOUD, env);
}

/** `folder`: for a disk of the test's own. */
export async function startVersitygw(folder?: string): Promise<Versitygw> {
  const own = mkdtempSync(path.join(tmpdir(), 'farm-test-s3-'));
  const data = folder ?? path.join(own, 'data');
  const users = path.join(own, 'users');
  for (const dir of [data, users]) mkdirSync(dir, { recursive: true });
  const command = whereIs('versitygw');
  const server = await start(own, (port) => [
    command,
    [
      '--port',
      `127.0.0.1:${port}`,
      '--region',
      REGION,
      '--iam-dir',
      users,
      '--health',
      '/health',
      '--quiet',
      'posix',
      data,
    ],
  ]);
  const admin = async (...args: string[]): Promise<void> => {
    const keys = ['--access', KEYS.AWS_ACCESS_KEY_ID, '--secret', KEYS.AWS_SECRET_ACCESS_KEY];
    await promisify(execFile)(command, ['admin', ...keys, '--endpoint-url', server.endpoint, ...args]);
  };
  return {
    ...server,
    folder: data,
    addUser: (access, secret) => admin('create-user', '--access', access, '--secret', secret, '--role', 'user'),
  };
}

export function startMoto(): Promise<TestS3> {
  const own = mkdtempSync(path.join(tmpdir(), 'farm-test-moto-'));
  return start(own, (port) => [whereIs('moto_server'), ['-H', '127.0.0.1', '-p', String(port)]]);
}

async function start(own: string, command: (port: number) => [string, string[]]): Promise<TestS3> {
  useKeys();
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const bucket = 'farm-test';
  const [file, args] = command(port);
  let server: { child: ChildProcess; ended: Promise<void> };
  const begin = async (): Promise<void> => {
    const env = {
      PATH: process.env.PATH,
      ROOT_ACCESS_KEY: KEYS.AWS_ACCESS_KEY_ID,
      ROOT_SECRET_KEY: KEYS.AWS_SECRET_ACCESS_KEY,
    };
    const child = spawn(file, args, { cwd: own, env, stdio: 'ignore' });
    server = { child, ended: new Promise((resolve) => child.once('exit', () => resolve())) };
    child.once('error', () => {});
    await until(
      `an answer of ${file}`,
      () =>
        fetch(`${endpoint}/health`).then(
          () => true,
          () => false,
        ),
      { withinMs: 120_000 },
    );
  };
  const kill = async (): Promise<void> => {
    server.child.kill('SIGKILL');
    await server.ended;
  };
  await begin();
  const client = new S3Client({ endpoint, region: REGION, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  return {
    endpoint,
    port,
    bucket,
    env: { ...KEYS, ...NO_CLOUD, AWS_REGION: REGION, S3_ENDPOINT: endpoint },
    kill,
    restart: async () => {
      await kill();
      await begin();
    },
    close: async () => {
      await kill();
      rmSync(own, { recursive: true, force: true });
    },
  };
}
