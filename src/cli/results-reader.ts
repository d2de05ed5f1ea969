// One reader over the two places where closed groups lie: committed shards in the store, the rest in the ledger's
// stream. A shard that is committed while we read moves groups from one to the other; the sequence number does not change.

import type { Config } from '../shared/config.ts';
import { parseCursor } from '../shared/group.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import { readSettings } from '../shared/ledger/run-settings.ts';
import type { Redis } from '../shared/redis/client.ts';
import { parseManifest } from '../shared/store/manifest.ts';
import { openStoreAddress, RUN_ID } from '../shared/store/open.ts';
import { type ResultLine, resultsFromStore } from '../shared/store/results.ts';
import { manifestKey } from '../shared/store/shard-name.ts';
import { renderLine } from '../shared/store/shard-record.ts';
import type { Store } from '../shared/store/store.ts';
import { unknownRun } from './stored-run.ts';

export interface ResultsReader {
  seqOf(cursor: string): Promise<{ seq: number } | { fault: string }>;
  /** True when no more groups can close. */
  isOver(): Promise<boolean>;
  /** Groups after `seq`, as many as are closed now. */
  after(seq: number): AsyncGenerator<ResultLine>;
}

const BATCH = 200;

export async function openResults(config: Config, redis: Redis, run: string): Promise<ResultsReader> {
  const ledger = new RunLedger(redis, run);
  const text = await ledger.field('settings');
  if (text === null) return await fromStoreAlone(await openStoreAddress(config.store), run);
  const settings = readSettings(text);
  const store = await openStoreAddress(settings.store);
  const identity = { run, incarnation: settings.incarnation, convention: settings.convention };
  const figure = async (name: string): Promise<number> => Number((await ledger.field(name)) ?? 0);

  async function* after(start: number): AsyncGenerator<ResultLine> {
    let seq = start;
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
      } else if (seq < (await figure('committed'))) {
        // Committed to the store while we read.
        for await (const row of resultsFromStore(store, run, seq)) {
          yield row;
          seq = row.seq;
        }
      } else return;
    }
  }
  return {
    after,
    isOver: async () => {
      const fields = await ledger.fields();
      return (
        fields.manifest !== undefined || Number(fields.closed) >= Number(fields.groups) || fields.state === 'stopped'
      );
    },
    seqOf: async (cursor) => within(parseCursor(settings.incarnation, cursor), await figure('closed')),
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
    seqOf: async (cursor) =>
      within(manifest === null ? null : parseCursor(manifest.incarnation, cursor), manifest?.counts.groups ?? 0),
  };
}

function within(seq: number | null, last: number): { seq: number } | { fault: string } {
  if (seq === null) return { fault: 'is not one of this run' };
  return seq > last ? { fault: `is of the future: ${last} groups are closed` } : { seq };
}
