// `farm doctor`: what is there, what is missing, and how to get it. Starts nothing that was not there, the embedded Redis
// aside, which goes by itself.

import { type Config, readConfig } from '../../shared/config.ts';
import { EXIT, FarmError, messageOf } from '../../shared/errors.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { DEFAULT_LIMITS } from '../../shared/sandbox.ts';
import { openStoreAddress } from '../../shared/store/open.ts';
import { engineReport } from '../engine-report.ts';
import { requireSandbox } from '../needs.ts';

interface Finding {
  part: string;
  ok: boolean;
  found: string;
  /** The next step, where something is missing. */
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

async function part(name: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { part: name, ok: true, found: await look() };
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

async function redis(config: Config): Promise<string> {
  const { redis: connection, place } = await connectRedis(config);
  try {
    const info = await connection.info();
    const field = (name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '?';
    return `${place.address}: version ${field('redis_version')}, AOF ${field('aof_enabled') === '1' ? 'on' : 'OFF: a crash loses the ledger'}, ${field('maxmemory_policy')}`;
  } finally {
    connection.disconnect();
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
