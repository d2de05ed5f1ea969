// One reader over the two places where closed groups lie: committed shards in the store, the rest in the ledger's
// stream. A shard that is committed while we read moves groups from one to the other; the sequence number does not change.

import type { Config } from '../shared/config.ts';
import { missingError } from '../shared/errors.ts';
import { parseCursor } from '../shared/group.ts';
import { requireVersion } from '../shared/ledger/ledger-version.ts';
import { allClosed } from '../shared/ledger/planned-groups.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import { identityOf, readSettings } from '../shared/ledger/run-settings.ts';
import type { Redis } from '../shared/redis/client.ts';
import { parseManifest } from '../shared/store/manifest.ts';
import { openStoreAddress, RUN_ID } from '../shared/store/open.ts';
import { type ResultLine, resultsFromStore } from '../shared/store/results.ts';
import { manifestKey } from '../shared/store/shard-name.ts';
import { renderLine } from '../shared/store/shard-record.ts';
import type { Store } from '../shared/store/store.ts';
import { unknownRun } from './stored-run.ts';

export interface ResultsReader {
  /** Where a cursor stands; `code`, if it cannot be gone on from. */
  seqOf(cursor: string): Promise<{ seq: number } | { code: 'cursor' | 'cursor_lost'; fault: string; hint: string }>;
  /** True when no more groups can close. */
  isOver(): Promise<boolean>;
  /** Groups after `seq`, as many as are closed now. */
  after(seq: number): AsyncGenerator<ResultLine>;
  /** Whether a group that was given is still what it was: a Redis that lost writes closes others under the same numbers. */
  stands(given: ResultLine): Promise<boolean>;
}

const BATCH = 200;
/** What is between Redis and the store is looked for so often. */
const TRIES = 3;

export async function openResults(config: Config, redis: Redis, run: string): Promise<ResultsReader> {
  const ledger = new RunLedger(redis, run);
  const fields = await ledger.fields();
  if (fields.state === undefined) return await fromStoreAlone(await openStoreAddress(config.store), run);
  requireVersion(run, fields);
  const settings = readSettings(fields.settings ?? '');
  const store = await openStoreAddress(settings.store);
  const identity = identityOf(run, settings);
  const figure = async (name: string): Promise<number> => Number((await ledger.field(name)) ?? 0);
  /** The last group that was found in the store as it was given: shards do not change. */
  let sure = 0;

  async function* after(start: number): AsyncGenerator<ResultLine> {
    let seq = start;
    let missed = 0;
    if (seq < (await figure('committed'))) {
      for await (const row of resultsFromStore(store, run, seq)) {
        yield row;
        seq = row.seq;
      }
    }
    for (;;) {
      const entries = await ledger.entries(seq + 1, seq + BATCH);
      if (entries.length > 0 && entries[0]?.seq === seq + 1) {
        for (const entry of entries) {
          yield { seq: entry.seq, line: renderLine(identity, entry.closed) };
          seq = entry.seq;
        }
        missed = 0;
        continue;
      }
      const { closed = 0, committed = 0 } = await ledger.fields();
      if (seq >= Number(closed)) return;
      if (seq < Number(committed)) {
        // Committed to the store while we read.
        for await (const row of resultsFromStore(store, run, seq)) {
          yield row;
          seq = row.seq;
          missed = 0;
        }
      }
      if (++missed > TRIES)
        throw missingError(
          'results_missing',
          `group number ${seq + 1} of run ${run} is closed, and neither in Redis nor in the shards of ${store.address}`,
          `put the missing shard back; or remove the run with ./farm rm ${run}, and run it anew`,
        );
    }
  }
  const stands = async (given: ResultLine): Promise<boolean> => {
    if (given.seq <= sure) return true;
    const [entry] = await ledger.entries(given.seq, given.seq);
    if (entry !== undefined) return renderLine(identity, entry.closed) === given.line;
    if (given.seq > (await figure('committed'))) return false;
    const row = await rowAt(store, run, given.seq);
    if (row === given.line) sure = given.seq;
    return row === given.line;
  };
  return {
    after,
    stands,
    isOver: async () => {
      const now = await ledger.fields();
      if (now.manifest !== undefined || now.state === 'stopped') return true;
      return allClosed(now) && (settings.plan.spares === undefined || now.committed === now.closed);
    },
    seqOf: async (cursor) => {
      const at = within(parseCursor(settings.incarnation, cursor), await figure('closed'));
      if (!('seq' in at) || at.mark === null || at.seq === 0) return at;
      const [entry] = await ledger.entries(at.seq, at.seq);
      const line = entry === undefined ? await rowAt(store, run, at.seq) : renderLine(identity, entry.closed);
      return line !== null && cursorOf(line) === cursor ? at : LOST;
    },
  };
}

async function fromStoreAlone(store: Store, run: string): Promise<ResultsReader> {
  const bytes = RUN_ID.test(run) ? await store.get(manifestKey(run)) : null;
  if (bytes === null) throw unknownRun(run);
  const parsed = parseManifest(bytes);
  const manifest = 'fault' in parsed ? null : parsed.manifest;
  return {
    after: (seq) => resultsFromStore(store, run, seq),
    isOver: async () => true,
    stands: async () => true,
    seqOf: async (cursor) => {
      const last = manifest?.counts.groups ?? 0;
      const at = within(manifest === null ? null : parseCursor(manifest.incarnation, cursor), last);
      if (!('seq' in at) || at.mark === null || at.seq === 0) return at;
      const line = await rowAt(store, run, at.seq);
      return line !== null && cursorOf(line) === cursor ? at : LOST;
    },
  };
}

const LOST = {
  code: 'cursor_lost',
  fault: 'names a group that is not there any more: Redis came back with less than it had acknowledged',
  hint: 'go on after an earlier cursor; groups that closed after it are done anew',
} as const;

function within(
  at: { seq: number; mark: string | null } | null,
  last: number,
): { seq: number; mark: string | null } | { code: 'cursor'; fault: string; hint: string } {
  const hint = 'take the "cursor" of a record of this run';
  if (at === null) return { code: 'cursor', fault: 'is not one of this run', hint };
  return at.seq > last ? { code: 'cursor', fault: `is of the future: ${last} groups are closed`, hint } : at;
}

async function rowAt(store: Store, run: string, seq: number): Promise<string | null> {
  for await (const row of resultsFromStore(store, run, seq - 1)) return row.seq === seq ? row.line : null;
  return null;
}

export function cursorOf(line: string): string {
  return (JSON.parse(line) as { cursor: string }).cursor;
}
