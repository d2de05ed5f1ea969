// The body of a call that creates a container. It is one of two things: a box, as hardened as our own driver makes it, or a
// container that is never started and only lends its file system to be copied. What goes to the engine is written here anew
// from the few values that may differ, never what was sent: no key that we do not know, in whatever spelling, gets through.

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { boxBody } from '../sandbox/box-body.ts';

/** On every container that was made here: what it is. */
export const MADE_LABEL = 'rollout-farm.gate';
export type Made = 'box' | 'graft';

export type Container = { status: 'allowed'; made: Made; body: string } | { status: 'refused'; why: string };

const whole = z.int().positive();
/** Where a box may have a folder of its own, and how such a one is mounted. */
const tmpfsSchema = z.record(
  z.string().regex(/^\/(?:work|tmp|judge|farm|dev\/shm)$/),
  z.string().regex(/^rw,nosuid,nodev,(?:no)?exec,size=\d{1,9}k,nr_inodes=\d{1,9}(?:,(?:uid|gid|mode)=\d{1,9})*$/),
);
const boxSchema = z.looseObject({
  Image: z.string(),
  Labels: z
    .record(z.string().startsWith('rollout-farm.'), z.string().max(200))
    .refine((labels) => 'rollout-farm.farm' in labels && 'rollout-farm.worker' in labels, 'its owner is not named'),
  HostConfig: z.looseObject({
    Runtime: z
      .string()
      .regex(/^[\w.-]{1,64}$/)
      .optional(),
    Memory: whole,
    PidsLimit: whole.max(65_536),
    CpuPeriod: whole.max(1_000_000),
    CpuQuota: whole,
    CpuShares: whole,
    Tmpfs: tmpfsSchema,
  }),
});
const graftSchema = z.strictObject({ Image: z.string(), Cmd: z.tuple([z.literal('/')]) });

export function containerOf(text: string, name: string | null, seccomp: string): Container {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return { status: 'refused', why: 'the body is not JSON' };
  }
  return name === null ? graftOf(given) : boxOf(given, name, seccomp);
}

function graftOf(given: unknown): Container {
  const read = graftSchema.safeParse(given);
  if (!read.success)
    return { status: 'refused', why: 'a container without a name is one to copy from or to, and no more' };
  const body = { ...read.data, NetworkDisabled: true, Labels: { [MADE_LABEL]: 'graft' } };
  return { status: 'allowed', made: 'graft', body: JSON.stringify({ ...body, HostConfig: { NetworkMode: 'none' } }) };
}

function boxOf(given: unknown, name: string, seccomp: string): Container {
  const read = boxSchema.safeParse(given);
  if (!read.success) return { status: 'refused', why: `no box: ${read.error.issues[0]?.path.join('.')}` };
  const { Image, Labels, HostConfig } = read.data;
  const { Runtime = null, Memory, PidsLimit, CpuPeriod, CpuQuota, CpuShares, Tmpfs } = HostConfig;
  const plan = { image: Image, labels: Labels, memoryBytes: Memory, pids: PidsLimit, runtime: Runtime, tmpfs: Tmpfs };
  const box = boxBody({ ...plan, cpus: 1 }, seccomp);
  Object.assign(box.HostConfig, { CpuPeriod, CpuQuota, CpuShares });
  const differs = difference({ name, ...box }, { name, ...(given as object) });
  if (differs !== null)
    return { status: 'refused', why: `${differs} is not as in a box of this version: worker and gate go together` };
  return {
    status: 'allowed',
    made: 'box',
    body: JSON.stringify({ ...box, Labels: { ...Labels, [MADE_LABEL]: 'box' } }),
  };
}

/** Where the two are not the same, for people; null if they are. */
function difference(wanted: Record<string, unknown>, given: Record<string, unknown>, at = ''): string | null {
  for (const key of new Set([...Object.keys(wanted), ...Object.keys(given)])) {
    const [a, b] = [wanted[key], given[key]];
    if (isDeepStrictEqual(a, b)) continue;
    const deeper = isObject(a) && isObject(b) ? difference(a, b, `${at}${key}.`) : null;
    return deeper ?? `${at}${key.slice(0, 80)}`;
  }
  return null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
