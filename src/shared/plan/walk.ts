// Walks a plan as it lies in the store, one group's document after another, with every hash checked on the way,
// and finds the claims in each. For those who account for a plan (verify-run, removal), not for those who play it.
// What is broken is yielded as a fault and the walk goes on; memory holds one pack at a time.

import { type Claim, objectKey, packKey, sha256 } from '../claim.ts';
import { messageOf } from '../errors.ts';
import { sha256Away } from '../store/content.ts';
import type { Store } from '../store/store.ts';
import { decodeDocument, decodeEntry, type PlanDocument, type PlanEntry, type PlanRef } from './plan.ts';

const PIECE_BYTES = 4 * 1024 * 1024;

export type PlanStep =
  | {
      kind: 'document';
      group: number;
      pack: string;
      taskId: string;
      spare: number | null;
      claims: Claim[];
      document: PlanDocument;
    }
  /** `group` is null where the fault is not one group's. */
  | { kind: 'fault'; group: number | null; fault: string };

export async function* walkPlan(store: Store, plan: PlanRef): AsyncGenerator<PlanStep> {
  let held: { pack: string; bytes: Buffer | null } = { pack: '', bytes: null };
  let group = 0;
  for await (const line of indexLines(store, plan.index)) {
    const entry = readEntry(line);
    if (entry === null) {
      yield { kind: 'fault', group, fault: `plan index ${plan.index.key}: line ${group + 1} is not an entry` };
      group++;
      continue;
    }
    const { pack: digest } = entry.place;
    if (digest !== held.pack) {
      const pack = await readPack(store, digest);
      held = { pack: digest, bytes: 'bytes' in pack ? pack.bytes : null };
      if ('fault' in pack) yield { kind: 'fault', group: null, fault: `plan pack ${packKey(digest)}: ${pack.fault}` };
    }
    yield held.bytes
      ? readDocument(held.bytes, entry, group)
      : { kind: 'fault', group, fault: `group ${group}: its plan document is in a broken pack` };
    group++;
  }
}

async function* indexLines(store: Store, index: Claim): AsyncGenerator<string> {
  let rest = '';
  for (let offset = 0; offset < index.bytes; offset += PIECE_BYTES) {
    const piece = await store.get(objectKey(index.sha256), { offset, length: PIECE_BYTES });
    if (piece === null) return;
    const lines = (rest + piece.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

function readEntry(line: string): PlanEntry | null {
  try {
    return decodeEntry(line);
  } catch {
    return null;
  }
}

async function readPack(store: Store, digest: string): Promise<{ bytes: Buffer } | { fault: string }> {
  try {
    const bytes = await store.get(packKey(digest));
    if (bytes === null) return { fault: 'is not there' };
    const found = await sha256Away(bytes);
    return found === digest ? { bytes } : { fault: `has the hash ${found}` };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}

function readDocument(pack: Buffer, { taskId, place, spare }: PlanEntry, group: number): PlanStep {
  const fault = (what: string): PlanStep => ({
    kind: 'fault',
    group,
    fault: `plan document of group ${group}: ${what}`,
  });
  const bytes = pack.subarray(place.offset, place.offset + place.bytes);
  if (bytes.byteLength !== place.bytes) return fault('its place lies beyond its pack');
  if (sha256(bytes) !== place.sha256) return fault('its hash is not the one in the plan index');
  try {
    const document = decodeDocument(bytes);
    if (document.task_id !== taskId) return fault('its task is not the one in the plan index');
    const claims = claimsIn(document);
    const odd = claims.find((claim) => claim.key !== `sha256/${claim.sha256}`);
    if (odd) return fault(`the claim ${odd.key} has the hash ${odd.sha256}`);
    return { kind: 'document', group, pack: place.pack, taskId, spare: spare ?? null, claims, document };
  } catch (error) {
    return fault(messageOf(error));
  }
}

/** What a document claims: its config, prompt, metadata, and what each member plays. */
function claimsIn({ config, prompt, metadata, plays }: PlanDocument): Claim[] {
  const held = [config, prompt, metadata, ...plays.map((p) => (p.kind === 'actions' ? p.actions : p.completion))];
  return held.flatMap((h) => (h !== null && 'claim' in h ? [h.claim] : []));
}
