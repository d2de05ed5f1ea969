import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { objectKey } from '../../src/shared/claim.ts';
import { encodeEntry, type PlanEntry, type PlanRef } from '../../src/shared/plan/plan.ts';
import { PlanIndex } from '../../src/shared/plan/plan-index.ts';
import type { Store } from '../../src/shared/store/store.ts';

const GROUPS = 20_000;

/** A store of one object, which counts what is read of it. */
class OneObject {
  read = 0;
  content: Buffer;

  constructor(content: Buffer) {
    this.content = content;
  }

  get store(): Store {
    return {
      address: 'one object',
      head: async () => ({ bytes: this.content.length, writtenAt: 0 }),
      get: async (_key: string, range: { offset: number; length: number }) => {
        const part = this.content.subarray(range.offset, range.offset + range.length);
        this.read += part.length;
        return Buffer.from(part);
      },
    } as unknown as Store;
  }
}

function planned(groups: number): { object: OneObject; ref: PlanRef; entries: PlanEntry[] } {
  const entries = Array.from({ length: groups }, (_, g): PlanEntry => {
    const digest = createHash('sha256')
      .update(String(g >> 9))
      .digest('hex');
    // Lines of unequal length, so that no stretch begins where another would.
    return {
      taskId: 't'.repeat(1 + (g % 40)) + g,
      place: { pack: digest, offset: g, bytes: 7, sha256: digest },
      lane: g % 3 ? 'light' : 'rollout',
    };
  });
  const content = Buffer.from(entries.map((entry) => `${encodeEntry(entry)}\n`).join(''));
  const sha256 = createHash('sha256').update(content).digest('hex');
  const index = { key: `sha256/${sha256}`, sha256, bytes: content.length };
  return { object: new OneObject(content), ref: { index, groups, groupSize: 2 }, entries };
}

describe('the index of a plan', () => {
  it('gives any stretch of it, as it was written', async () => {
    const { object, ref, entries } = planned(GROUPS);
    const index = await PlanIndex.open(object.store, ref);
    expect(index.length).toBe(GROUPS);
    for (const [from, to] of [
      [0, 1],
      [0, 64],
      [1_000, 2_100],
      [1_023, 1_025],
      [5_000, 5_000],
      [19_990, 30_000],
    ] as const)
      expect(await index.entries(from, to)).toEqual(entries.slice(from, to));
  });

  it.each([1, 1_023, 1_024, 1_025, 2_048])('has all of %i groups', async (groups) => {
    const { object, ref, entries } = planned(groups);
    expect(await (await PlanIndex.open(object.store, ref)).entries(0, groups)).toEqual(entries);
  });

  it('is read twice over, by one who goes through it in steps, and no more', async () => {
    const { object, ref } = planned(GROUPS);
    const index = await PlanIndex.open(object.store, ref);
    for (let g = 0; g < GROUPS; g += 100) await index.entries(g, g + 512);
    expect(object.read).toBe(2 * ref.index.bytes);
  });

  it('is refused where it is another one, is cut, or lacks groups; and where it changes while it is in use', async () => {
    const { object, ref } = planned(3_000);
    const index = await PlanIndex.open(object.store, ref);
    const sound = object.content;
    object.content = sound.subarray(0, sound.length - 9);
    await expect(PlanIndex.open(object.store, ref)).rejects.toMatchObject({ code: 'object_damaged' });
    object.content = sound;
    await expect(PlanIndex.open(object.store, { ...ref, groups: 3_001 })).rejects.toThrow(/3000 groups, not 3001/);
    object.content = Buffer.from(sound.toString('latin1').replace('"light"', '"Light"'), 'latin1');
    await expect(PlanIndex.open(object.store, ref)).rejects.toThrow(objectKey(ref.index.sha256));
    await expect(index.entries(0, 1)).rejects.toMatchObject({ code: 'object_damaged' });
    object.content = sound;
    expect(await index.entries(0, 1)).toHaveLength(1);
  });
});
