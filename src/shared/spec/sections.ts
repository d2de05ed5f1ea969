// The sections of a spec that say how a run is carried out: their fields, bounds and defaults (INTERFACE, run spec).
// Each default stands here once, with the reason for its bounds where there is one.

import path from 'node:path';
import type { Config } from '../config.ts';
import { CONVENTIONS } from '../group.ts';
import { isMap, type ValueMap } from '../json/value.ts';
import { DEFAULT_LIMITS } from '../sandbox.ts';
import { parseS3Address } from '../store/s3-address.ts';
import { Fields } from './fields.ts';
import { isImageName } from './image-name.ts';
import { type Report, show } from './problem.ts';
import { ISOLATIONS, type RunSpec } from './spec.ts';
import { VERIFIER_SECTIONS } from './verifier-config.ts';

/** Beside the work folder a box has 16 MB of /tmp and shared memory, and its runner needs 48 MB of its own. */
const BOX_OVERHEAD_MB = 64;
const DAY_S = 86_400;

const RUN_KEYS = [
  'name',
  'seed',
  'group_size',
  'tasks',
  'policy',
  'max_steps',
  'groups',
  'sandbox',
  'store',
  'advantage',
  'audit',
  'limits',
] as const;

type Settings = Omit<RunSpec, 'document' | 'verifier'> & { groupSizeKnown: boolean };

export function readSettings(
  root: ValueMap,
  folder: string,
  config: Config,
  report: Report,
  warnings: string[],
): Settings {
  const fields = new Fields(root, [], report);
  fields.only([...RUN_KEYS, ...VERIFIER_SECTIONS]);
  const given = root.get('group_size');
  const groupSize = fields.int('group_size', { min: 1, max: 4096 }, null);
  const groupSizeKnown = given === BigInt(groupSize);
  readAudit(root, report);
  return {
    name: fields.text('name', true) ?? '',
    seed: fields.bigint('seed', 0n),
    groupSize,
    groupSizeKnown,
    maxSteps: fields.int('max_steps', { min: 1, max: 1_000_000 }, 10),
    groups: readGroups(root, groupSizeKnown ? groupSize : 4096, report, warnings),
    sandbox: readSandbox(root, report),
    store: readStore(fields, folder, config),
    advantage: fields.choice('advantage', CONVENTIONS, 'trl'),
    limits: readLimits(root, report),
  };
}

function readGroups(root: ValueMap, groupSize: number, report: Report, warnings: string[]): RunSpec['groups'] {
  const fields = new Fields(root.get('groups'), ['groups'], report);
  fields.only(['close', 'at_least', 'deadline_s', 'refill', 'refill_degenerate']);
  const close = fields.choice('close', ['all', 'at_least'], 'all');
  let atLeast: number | null = null;
  if (close === 'at_least' || fields.has('at_least')) {
    const bounds = { min: 1, max: groupSize };
    atLeast = close === 'at_least' ? fields.int('at_least', bounds, null) : fields.intOrNull('at_least', bounds);
  }
  if (close === 'all' && atLeast !== null) {
    warnings.push('groups.at_least is not used: it counts with `close: at_least`');
    atLeast = null;
  }
  const refillDegenerate = fields.int('refill_degenerate', { min: 0, max: 1_000 }, 0);
  if (refillDegenerate > 0 && groupSize === 1)
    fields.problem('refill_degenerate', 'a group of one is never told apart; allowed with group_size 1: 0');
  return {
    close,
    atLeast,
    deadlineS: fields.number('deadline_s', { above: 0, max: 365 * DAY_S }, 600),
    refill: fields.int('refill', { min: 0, max: 1_000_000 }, 2),
    refillDegenerate,
  };
}

function readSandbox(root: ValueMap, report: Report): RunSpec['sandbox'] {
  const fields = new Fields(root.get('sandbox'), ['sandbox'], report);
  fields.only([
    'image',
    'memory_mb',
    'cpus',
    'pids',
    'tmpfs_mb',
    'network',
    'timeout_s',
    'output_kb',
    'exec',
    'runtime',
    'isolation',
  ]);
  const network = fields.raw('network');
  if (network !== undefined && network !== 'none')
    fields.problem('network', 'a box with a network is not built yet; allowed: none');
  const memoryMb = fields.int('memory_mb', { min: 64, max: 1_048_576 }, DEFAULT_LIMITS.memoryMb);
  const tmpfsMb = fields.int('tmpfs_mb', { min: 1, max: 1_048_576 }, DEFAULT_LIMITS.tmpfsMb);
  if (tmpfsMb + BOX_OVERHEAD_MB > memoryMb)
    fields.problem(
      fields.has('tmpfs_mb') ? 'tmpfs_mb' : 'memory_mb',
      `files in a box count as its memory: tmpfs_mb (${tmpfsMb}) + ${BOX_OVERHEAD_MB} must not be more than memory_mb (${memoryMb})`,
    );
  return {
    image: readImage(fields),
    memoryMb,
    cpus: fields.number('cpus', { min: 0.01, max: 1024 }, DEFAULT_LIMITS.cpus),
    pids: fields.int('pids', { min: 8, max: 65_536 }, DEFAULT_LIMITS.pids),
    tmpfsMb,
    network: 'none',
    timeoutS: fields.number('timeout_s', { above: 0, max: DAY_S }, DEFAULT_LIMITS.timeoutMs / 1000),
    outputKb: fields.int('output_kb', { min: 1, max: 65_536 }, DEFAULT_LIMITS.outputBytes / 1024),
    exec: fields.bool('exec', DEFAULT_LIMITS.exec),
    runtime: readRuntime(fields),
    isolation: fields.choice('isolation', ISOLATIONS, 'fresh'),
  };
}

/** Whether the engine has it is found out where the run starts. */
function readRuntime(fields: Fields): string | null {
  const given = fields.raw('runtime');
  if (given === undefined || given === null) return null;
  if (typeof given === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(given)) return given;
  fields.problem('runtime', `must be the name of a runtime of the engine, such as runsc, given ${show(given)}`);
  return null;
}

function readImage(fields: Fields): string {
  if (!fields.has('image')) return DEFAULT_LIMITS.image;
  const image = fields.text('image', true);
  if (image === null || isImageName(image)) return image ?? '';
  fields.problem(
    'image',
    `must be the name of an image, [HOST/]NAME[:TAG][@DIGEST] in small letters, given ${show(image)}`,
  );
  return '';
}

function readLimits(root: ValueMap, report: Report): RunSpec['limits'] {
  const fields = new Fields(root.get('limits'), ['limits'], report);
  fields.only(['in_flight', 'verifier_calls', 'policy_tokens', 'paused_s']);
  return {
    inFlight: fields.int('in_flight', { min: 1, max: 100_000 }, 512),
    verifierCalls: fields.intOrNull('verifier_calls', { min: 0, max: Number.MAX_SAFE_INTEGER }),
    policyTokens: fields.intOrNull('policy_tokens', { min: 0, max: Number.MAX_SAFE_INTEGER }),
    pausedS: fields.number('paused_s', { min: 0, max: 365 * DAY_S }, 3600),
  };
}

function readAudit(root: ValueMap, report: Report): void {
  const fields = new Fields(root.get('audit'), ['audit'], report);
  fields.only(['fraction']);
  if (fields.number('fraction', { min: 0, max: 1 }, 0) > 0)
    fields.problem('fraction', 'audits are not built yet; allowed: 0');
}

function readStore(fields: Fields, folder: string, config: Config): string {
  const given = fields.has('store') ? (fields.text('store', true) ?? '') : config.store;
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(given)?.[1]?.toLowerCase();
  if (scheme === undefined) return path.resolve(fields.has('store') ? folder : '.', given);
  // What FARM_STORE says is no part of the file: opening it names what is wrong with it.
  if (!fields.has('store')) return given;
  const parsed =
    scheme === 's3' ? parseS3Address(given) : { fault: 'is not known; name a folder or s3://bucket/prefix' };
  if ('fault' in parsed) fields.problem('store', `${scheme === 's3' ? given : `${scheme}://`} ${parsed.fault}`);
  return given;
}

/** Whether a file has a verifier's sections and nothing of a run. */
export function isVerifierFile(root: ValueMap): boolean {
  return VERIFIER_SECTIONS.some((key) => root.has(key)) && !RUN_KEYS.some((key) => root.has(key));
}

/** Whether the spec asks for a verifier. */
export function hasDomain(root: ValueMap): boolean {
  return isMap(root.get('domain'));
}
