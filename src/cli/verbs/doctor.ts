// `farm doctor`: what is there, what is missing, and how to get it. Starts nothing that was not there, the embedded Redis
// aside, which goes by itself.

import { type Config, readConfig } from '../../shared/config.ts';
import { EXIT, FarmError, messageOf, missingError } from '../../shared/errors.ts';
import { enginesInUse } from '../../shared/permits/engines.ts';
import { presentIn } from '../../shared/presence.ts';
import { SHARED_REALM } from '../../shared/realm.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { DEFAULT_LIMITS } from '../../shared/sandbox.ts';
import { openStoreAddress } from '../../shared/store/open.ts';
import { engineReport } from '../engine-report.ts';
import { NO_ENGINE, requireSandbox } from '../needs.ts';
import { redisReport } from '../redis-report.ts';

const WHO_NEEDS_ENGINE = 'An engine is needed only where rollout workers run';

interface Finding {
  part: string;
  ok: boolean;
  found: string;
  /** The next step, where something is missing; what is unwise, where nothing is. */
  hint?: string;
}

export async function doctor(args: { json: boolean }): Promise<number> {
  const config = readConfig();
  const findings = [
    node(),
    await part('sandbox', () => sandbox(config)),
    await part('redis', () => redis(config)),
    await part('store', () => store(config)),
    ambertrace(config),
  ];
  if (args.json) process.stdout.write(`${JSON.stringify(findings)}\n`);
  else
    for (const f of findings) {
      process.stdout.write(`${f.ok ? 'ok     ' : 'MISSING'} ${f.part.padEnd(10)} ${f.found}\n`);
      if (f.hint) process.stdout.write(`                   ${f.hint}\n`);
    }
  return findings.every((f) => f.ok) ? EXIT.ok : EXIT.missing;
}

async function part(name: string, look: () => Promise<string | { found: string; hint?: string }>): Promise<Finding> {
  try {
    const seen = await look();
    return { part: name, ok: true, ...(typeof seen === 'string' ? { found: seen } : seen) };
  } catch (error) {
    const hint = error instanceof FarmError ? error.hint : undefined;
    return { part: name, ok: false, found: messageOf(error), ...(hint === undefined ? {} : { hint }) };
  }
}

function node(): Finding {
  return { part: 'node', ok: true, found: process.version };
}

async function sandbox(config: Config): Promise<string | { found: string; hint?: string }> {
  try {
    await requireSandbox(config, DEFAULT_LIMITS.image);
  } catch (error) {
    if (!(error instanceof FarmError && error.code === NO_ENGINE)) throw error;
    const elsewhere = await enginesElsewhere(config);
    if (elsewhere === null)
      throw missingError(
        error.code,
        `${error.message}, and no live worker is known that has one`,
        `${error.hint}. ${WHO_NEEDS_ENGINE}: a gateway, a collector or a verify worker needs none`,
      );
    return { found: `none needed here: ${elsewhere}`, hint: `here ${error.message}. ${WHO_NEEDS_ENGINE}` };
  }
  return engineReport();
}

/** Null where no live rollout worker that any run may have says that its engine answers, and where no Redis can be asked. */
async function enginesElsewhere(config: Config): Promise<string | null> {
  const connected = await connectRedis(config).catch(() => null);
  if (connected === null) return null;
  const { redis } = connected;
  try {
    const shared = (await presentIn(redis, SHARED_REALM)).filter((one) => one.role === 'rollout');
    const live = new Set(shared.map((one) => one.worker));
    const used = (await enginesInUse(redis)).filter((use) => live.has(use.worker));
    const engines = new Set(used.map((use) => use.engine)).size;
    return engines === 0 ? null : `rollout workers on this Redis: ${used.length}, their engines: ${engines}`;
  } finally {
    redis.disconnect();
  }
}

async function redis(config: Config): Promise<{ found: string; hint?: string }> {
  const connected = await connectRedis(config);
  try {
    const { warnings } = connected;
    return { found: await redisReport(connected), ...(warnings.length === 0 ? {} : { hint: warnings.join('; ') }) };
  } finally {
    connected.redis.disconnect();
  }
}

async function store(config: Config): Promise<string> {
  const opened = await openStoreAddress(config.store);
  try {
    const { conditionalPut, warnings } = await opened.probe();
    const conditional = conditionalPut ? 'conditional put' : 'NO conditional put: the ledger alone fences';
    return [`${opened.address} can be written and read, ${conditional}`, ...warnings].join('; ');
  } finally {
    await opened.close();
  }
}

function ambertrace(config: Config): Finding {
  const where = config.ambertraceBaseUrl ?? 'https://app.ambertrace.ai (default)';
  return {
    part: 'ambertrace',
    ok: true,
    found:
      config.ambertraceApiKey === null
        ? `no AMBERTRACE_API_KEY: verified tasks need one (${where})`
        : `a key is set, for ${where}; not asked`,
  };
}
