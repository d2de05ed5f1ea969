// The only reader of process.env. What belongs to a run stands in its spec; here is what belongs to the
// machine: where Redis, the store, the engine and the verifier are, and the secrets that reach them.
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { secretsOfUrl } from './redis/url.js';
/** Names of the variables that hold secrets: redacted everywhere (log.ts), never passed to a sandbox. */
export const SECRET_NAMES = [
    'FARM_API_KEY',
    'AMBERTRACE_API_KEY',
    'OPENAI_API_KEY',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SESSION_TOKEN',
];
export function readConfig(env = process.env) {
    const dataDir = path.resolve(env.FARM_DATA || 'farm-data');
    return {
        dataDir,
        redisUrl: env.REDIS_URL || null,
        store: env.FARM_STORE || path.join(dataDir, 'store'),
        farmApiKey: env.FARM_API_KEY || null,
        ambertraceApiKey: env.AMBERTRACE_API_KEY || null,
        ambertraceBaseUrl: env.AMBERTRACE_BASE_URL || null,
        dockerHost: env.DOCKER_HOST || null,
        logLevel: env.LOG_LEVEL || null,
        color: !env.NO_COLOR,
        runtimeDir: path.join(tmpdir(), `rollout-farm-${userInfo().uid}`),
    };
}
/** The secrets that are set, to be redacted wherever text leaves the process. */
export function knownSecrets(env = process.env) {
    const secrets = SECRET_NAMES.flatMap((name) => (env[name] ?? '').split(',')).filter((s) => s.length >= 6);
    secrets.push(...secretsOfUrl(env.REDIS_URL ?? ''));
    for (const name of ['AMBERTRACE_BASE_URL', 'S3_ENDPOINT']) {
        try {
            const { password } = new URL(env[name] ?? '');
            // As it is sent, and as it stands in the address.
            if (password)
                secrets.push(password, decodeURIComponent(password));
        }
        catch {
            // not a URL, hence no password in it
        }
    }
    return secrets;
}
/** The environment for a child that is one of ours (a role of the farm). */
export function childEnvironment(extra = {}, env = process.env) {
    return { ...env, ...extra };
}
