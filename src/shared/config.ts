// The only reader of process.env. What belongs to a run stands in its spec; here is what belongs to the
// machine: where Redis, the store, the engine and the verifier are, and the secrets that reach them.

import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { secretsOfUrl } from './redis/url.ts';

/** Names of the variables that hold secrets: redacted everywhere (log.ts), never passed to a sandbox. */
export const SECRET_NAMES = [
  'FARM_API_KEY',
  'AMBERTRACE_API_KEY',
  'OPENAI_API_KEY',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
] as const;

export interface Config {
  /** Absolute. All that one machine keeps: embedded Redis, folder store, logs. */
  dataDir: string;
  /** Null: the embedded Redis of `dataDir`. */
  redisUrl: string | null;
  /** `FARM_STORE`, else `$FARM_DATA/store`: what a spec without `store` means. */
  store: string;
  /** Where S3 is, if not at AWS, and its region; credentials are the SDK's own business. */
  s3: { endpoint: string | null; region: string | null };
  /** Keys that may call the gateway, comma-separated; null: this machine only. */
  farmApiKey: string | null;
  ambertraceApiKey: string | null;
  ambertraceBaseUrl: string | null;
  /** Set by the user: then we never start an engine. */
  dockerHost: string | null;
  /** Null: the command's own (info for workers, warn where a progress bar is shown). */
  logLevel: string | null;
  color: boolean;
  runtimeDir: string;
}

type Environment = Record<string, string | undefined>;

export function readConfig(env: Environment = process.env): Config {
  const dataDir = path.resolve(env.FARM_DATA || 'farm-data');
  return {
    dataDir,
    redisUrl: env.REDIS_URL || null,
    store: env.FARM_STORE || path.join(dataDir, 'store'),
    s3: {
      endpoint: env.S3_ENDPOINT || env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || null,
      region: env.AWS_REGION || env.AWS_DEFAULT_REGION || null,
    },
    farmApiKey: env.FARM_API_KEY || null,
    ambertraceApiKey: env.AMBERTRACE_API_KEY || null,
    ambertraceBaseUrl: env.AMBERTRACE_BASE_URL || null,
    dockerHost: env.DOCKER_HOST || null,
    logLevel: env.LOG_LEVEL || null,
    color: !env.NO_COLOR,
    runtimeDir: path.join(tmpdir(), `rollout-farm-${userInfo().uid}`),
  };
}

/** The AWS SDK announces on stderr, in every process, that its later versions will not take Node 20. We have pinned this one. */
export function muteSdkNotice(): void {
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
}

/** The secrets that are set, to be redacted wherever text leaves the process. */
export function knownSecrets(env: Environment = process.env): string[] {
  const secrets = SECRET_NAMES.flatMap((name) => (env[name] ?? '').split(',')).filter((s) => s.length >= 6);
  secrets.push(...secretsOfUrl(env.REDIS_URL ?? ''));
  for (const name of ['AMBERTRACE_BASE_URL', 'S3_ENDPOINT', 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL']) {
    try {
      const { password } = new URL(env[name] ?? '');
      // As it is sent, and as it stands in the address.
      if (password) secrets.push(password, decodeURIComponent(password));
    } catch {
      // not a URL, hence no password in it
    }
  }
  return secrets;
}

/** The environment for a child that is one of ours (a role of the farm). */
export function childEnvironment(
  extra: Record<string, string> = {},
  env: Environment = process.env,
): NodeJS.ProcessEnv {
  return { ...env, ...extra };
}
