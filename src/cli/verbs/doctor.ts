// `farm doctor`: what is there, what is missing, and how to get it. Starts nothing that was not there, the embedded Redis
// aside, which goes by itself.

import { type Config, readConfig } from '../../shared/config.ts';
import { EXIT, FarmError, messageOf } from '../../shared/errors.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { DEFAULT_LIMITS } from '../../shared/sandbox.ts';
import { openStoreAddress } from '../../shared/store/open.ts';
import { engineReport } from '../engine-report.ts';
import { requireSandbox } from '../needs.ts';
import { redisReport } from '../redis-report.ts';

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

async function sandbox(config: Config): Promise<string> {
  await requireSandbox(config, DEFAULT_LIMITS.image);
  return engineReport();
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
