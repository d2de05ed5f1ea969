// Collects garbage in a store: objects and packs that no run claims, probes and uploads that were cut short, what another farm
// has left in a finished run's folder, all only when they are older than a week. Every run's claims are read first, and if one's cannot all be known nothing is
// removed. What an unfinished run has put since it was opened stays, because its claims may be in the ledger alone. A put
// that finds an object half that old writes it again, so what is about to be claimed is never old.

import { randomBytes } from 'node:crypto';
import pLimit from 'p-limit';
import { leftByOthers } from './another-farm.ts';
import { KeyMarks } from './key-marks.ts';
import { claimedKeys, type RunRoots, runsInStore } from './run-claims.ts';
import { manifestKey } from './shard-name.ts';
import type { Store } from './store.ts';

export const GARBAGE_AGE_MS = 7 * 24 * 3_600_000;
/** Clocks of machines differ, and a run's first puts may be a little older than its opening. */
const OPENING_MARGIN_MS = 24 * 3_600_000;
const REMOVALS_AT_ONCE = 16;

export interface UnfinishedRun {
  run: string;
  roots: RunRoots;
  /** When it was opened; null if nobody knows any more. */
  openedAt: number | null;
}

export interface Garbage {
  /** A key, or the name of an unfinished put. */
  name: string;
  bytes: number;
  writtenAt: number;
}

export interface GarbageReport {
  objects: number;
  bytes: number;
  unfinishedPuts: number;
  /** Shards and indexes of other farms beside the manifests of finished runs. */
  leftByOthers: number;
  /** Not claimed, and too young to go. */
  young: number;
  claimed: number;
  /** Names below `objects/` that are not the farm's: left alone. */
  foreign: number;
  /** Why nothing was removed, or null. */
  refused: string | null;
}

export interface GarbageOptions {
  /** Those that the ledger knows in this store. */
  unfinished: readonly UnfinishedRun[];
  /** Only tells what would be removed. */
  dry: boolean;
  onGarbage: (garbage: Garbage) => void;
  /** For tests; default: a week. */
  ageMs?: number;
}

export async function collectGarbage(store: Store, options: GarbageOptions): Promise<GarbageReport> {
  const report: GarbageReport = {
    objects: 0,
    bytes: 0,
    unfinishedPuts: 0,
    leftByOthers: 0,
    young: 0,
    claimed: 0,
    foreign: 0,
    refused: null,
  };
  const claims = await allClaims(store, options.unfinished);
  if ('refused' in claims) return { ...report, refused: claims.refused };
  const now = await storeClock(store);
  const old = now - (options.ageMs ?? GARBAGE_AGE_MS);
  const opened = options.unfinished.map((run) => (run.openedAt as number) - OPENING_MARGIN_MS);
  const before = Math.min(old, ...opened);

  const removing = pLimit(REMOVALS_AT_ONCE);
  const removals: Promise<void>[] = [];
  const take = async (name: string, bytes: number, writtenAt: number, remove: () => Promise<void>): Promise<void> => {
    options.onGarbage({ name, bytes, writtenAt });
    if (options.dry) return;
    if (removals.length >= REMOVALS_AT_ONCE * 4) await Promise.all(removals.splice(0));
    removals.push(removing(remove));
  };
  for (const prefix of ['objects/', 'probe/'])
    for await (const { key, bytes, writtenAt } of store.list(prefix)) {
      const hex = hexOf(key);
      if (hex === null && !isProbe(key)) report.foreign++;
      else if (hex !== null && claims.marks.has(hex)) report.claimed++;
      else if (writtenAt >= before) report.young++;
      else {
        report.objects++;
        report.bytes += bytes;
        await take(key, bytes, writtenAt, () => removeOld(store, key, before));
      }
    }
  for await (const files of leftByOthers(store)) {
    if (files.some((file) => file.writtenAt >= before)) {
      report.young += files.length;
      continue;
    }
    report.leftByOthers += files.length;
    let removed = Promise.resolve();
    for (const { key, bytes, writtenAt } of files)
      await take(key, bytes, writtenAt, () => {
        removed = removed.then(() => removeOld(store, key, before));
        return removed;
      });
  }
  for await (const put of store.unfinishedPuts()) {
    if (put.begunAt >= old) continue;
    report.unfinishedPuts++;
    await take(put.name, 0, put.begunAt, () => put.remove());
  }
  await Promise.all(removals);
  return report;
}

/** Somebody may have put it again since it was listed. */
async function removeOld(store: Store, key: string, before: number): Promise<void> {
  const found = await store.head(key);
  if (found !== null && found.writtenAt < before) await store.delete(key);
}

/** The store's own: what is old is measured by the clock that dated it. */
async function storeClock(store: Store): Promise<number> {
  const key = `probe/${process.pid}-${randomBytes(8).toString('hex')}`;
  await store.put(key, Buffer.from('what time is it?'));
  const found = await store.head(key);
  await store.delete(key);
  return found?.writtenAt ?? 0;
}

async function allClaims(
  store: Store,
  unfinished: readonly UnfinishedRun[],
): Promise<{ marks: KeyMarks } | { refused: string }> {
  const marks = new KeyMarks();
  const known = new Map(unfinished.map((run) => [run.run, run]));
  for (const { run, openedAt } of unfinished)
    if (openedAt === null) return { refused: `run ${run} is unfinished, and nobody knows since when` };
  for (const run of new Set([...(await runsInStore(store)), ...known.keys()])) {
    const roots = known.get(run)?.roots ?? null;
    if (roots === null && (await store.head(manifestKey(run))) === null)
      return {
        refused: `run ${run} is unfinished, and no ledger here knows it: it may be at work for another Redis (./farm rm ${run} if it is not)`,
      };
    for await (const claimed of claimedKeys(store, run, roots)) {
      if ('unknown' in claimed) return { refused: `the claims of run ${run} are not all known (${claimed.unknown})` };
      marks.add(hexOf(claimed.key) ?? '');
    }
  }
  return { marks };
}

/** Of an object or pack; null for what is neither. */
function hexOf(key: string): string | null {
  const found = /^objects\/(?:packs|sha256\/([0-9a-f]{2}))\/([0-9a-f]{64})$/.exec(key);
  if (!found) return null;
  const [, folder, hex = ''] = found;
  return folder === undefined || hex.startsWith(folder) ? hex : null;
}

function isProbe(key: string): boolean {
  return /^probe\/\d+-[0-9a-f]{16}$/.test(key);
}
