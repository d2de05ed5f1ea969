import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { claimOf, objectKey, sha256 } from '../../../src/shared/claim.ts';
import { mapOf } from '../../../src/shared/json/value.ts';
import {
  checkObject,
  gunzipBounded,
  gzipSteady,
  INLINE_CONTENT_BYTES,
  putContent,
  readContent,
  sha256Away,
} from '../../../src/shared/store/content.ts';
import { openFolderStore } from '../../../src/shared/store/folder.ts';
import {
  buildManifest,
  documentSha256,
  type ManifestInput,
  parseManifest,
} from '../../../src/shared/store/manifest.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { keysOf } from '../../support/run-fixture.ts';

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'farm-content-'));
  store = await openFolderStore(dir);
});
afterEach(() => rm(dir, { recursive: true }));

describe('content', () => {
  it('that is small when compressed travels inline, and nothing is put', async () => {
    const content = Buffer.from('a trajectory '.repeat(1000));
    const { claim, inline } = await putContent(store, content);
    expect(claim).toEqual(claimOf(content));
    expect(inline && gunzipSync(inline)).toEqual(content);
    expect(await keysOf(store)).toEqual([]);
  });

  it.each([INLINE_CONTENT_BYTES, 70_000, 9_000_000])(
    'of %i bytes that do not shrink is an object, exactly as it is',
    async (size) => {
      const content = randomBytes(size);
      const { claim, inline } = await putContent(store, content);
      expect(inline).toBeNull();
      expect(claim).toEqual(claimOf(content));
      expect((await store.get(objectKey(claim.sha256)))?.equals(content)).toBe(true);
      expect((await readContent(store, claim)).equals(content)).toBe(true);
      expect(await checkObject(store, objectKey(claim.sha256), claim.sha256, size)).toBeNull();
    },
  );

  it('that was changed, cut or lost is refused by name', async () => {
    const { claim } = await putContent(store, randomBytes(5000));
    const key = objectKey(claim.sha256);
    for (const damage of [randomBytes(5000), randomBytes(4999)]) {
      await store.put(key, damage);
      await expect(readContent(store, claim)).rejects.toMatchObject({ message: expect.stringContaining(claim.key) });
      expect(await checkObject(store, key, claim.sha256, 5000)).toContain(key);
    }
    await store.delete(key);
    await expect(readContent(store, claim)).rejects.toThrow('is not there');
  });

  it('is compressed to the same bytes each time, without a time or a system in them', async () => {
    for (const content of [Buffer.from('abc'.repeat(99)), Buffer.from('abc'.repeat(300_000))]) {
      const bytes = await gzipSteady(content);
      expect(bytes.subarray(3, 8)).toEqual(Buffer.alloc(5));
      expect(bytes[9]).toBe(255);
      expect(bytes.equals(await gzipSteady(Buffer.from(content)))).toBe(true);
    }
  });

  it('is inflated no further than was promised', async () => {
    const bomb = await gzipSteady(Buffer.alloc(5_000_000));
    expect(await gunzipBounded(bomb, 1000)).toEqual({ fault: expect.stringContaining('more than 1000') });
    expect(await gunzipBounded(bomb, 4_999_999)).toEqual({ fault: expect.stringContaining('more than') });
    expect(await gunzipBounded(bomb, 5_000_000)).toHaveProperty('content');
    expect(await gunzipBounded(Buffer.from('x'), 1000)).toHaveProperty('fault');
  });

  it('has the same hash in this thread and in another', async () => {
    const large = randomBytes(400_000);
    expect(await sha256Away(large)).toBe(createHash('sha256').update(large).digest('hex'));
    expect(await sha256Away(large.subarray(7, 300))).toBe(sha256(large.subarray(7, 300)));
  });
});

describe('a manifest', () => {
  const claim = claimOf(Buffer.from('x'));
  const input: ManifestInput = {
    run: 'r',
    incarnation: 'abc',
    state: 'done',
    convention: 'trl',
    counts: { groups: 0, members: 2, completed: 0, no_result: 2, by_cause: { sandbox_lost: 1, budget: 1 } },
    plan: { index: claim, groups: 1, groupSize: 2 },
    inputs: [claim],
    spec: mapOf({ weight: 1.0, seed: 12345678901234567890n, text: 'ü\ud800', '10': null, '2': [] }),
    shards: [],
    link: 'a'.repeat(64),
  };
  const bytes = buildManifest(input);

  it('says what it was built from, ints and floats apart', () => {
    const parsed = parseManifest(bytes);
    expect(parsed).toMatchObject({ manifest: { ...input, spec_sha256: documentSha256(input.spec) } });
    expect(buildManifest('manifest' in parsed ? parsed.manifest : input).equals(bytes)).toBe(true);
  });

  it('is no manifest if any one byte of it is changed, left out or added', () => {
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] as number) ^ 1;
      expect(parseManifest(changed), `byte ${at}`).toHaveProperty('fault');
      expect(parseManifest(Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]))).toHaveProperty('fault');
      expect(
        parseManifest(Buffer.concat([bytes.subarray(0, at), Buffer.from(' '), bytes.subarray(at)])),
      ).toHaveProperty('fault');
    }
  });

  it('never throws on what is none', () => {
    for (const text of ['', '{', 'null', '[]', '{}', '{"spec": {}}', '\ufeff{}', '['.repeat(5000)])
      expect(parseManifest(Buffer.from(text))).toHaveProperty('fault');
    expect(parseManifest(Buffer.from([0xff, 0xfe]))).toHaveProperty('fault');
  });
});
