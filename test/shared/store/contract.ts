// What every store must hold, whatever lies under it: the folder's tests and, once there is one, S3's run this.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/shared/store/store.ts';

export interface OpenedStore {
  store: Store;
  cleanUp(): Promise<void>;
}

export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} as a store`, () => {
    let opened: OpenedStore;
    let store: Store;
    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(async () => {
      await store.close();
      await opened.cleanUp();
    });

    async function keys(prefix: string): Promise<string[]> {
      const found: string[] = [];
      for await (const { key } of store.list(prefix)) found.push(key);
      return found;
    }

    it('gives back the bytes that were put, also none at all and ones beyond a buffer', async () => {
      const large = Buffer.alloc(3_000_000, 'abcdefg');
      await store.put('a/empty', Buffer.alloc(0));
      await store.put('a/large', large);
      expect(await store.get('a/empty')).toEqual(Buffer.alloc(0));
      expect((await store.get('a/large'))?.equals(large)).toBe(true);
      expect(await store.head('a/large')).toBe(3_000_000);
      expect(await store.head('a/empty')).toBe(0);
    });

    it('overwrites as a whole', async () => {
      await store.put('k', Buffer.from('a long first text'));
      await store.put('k', Buffer.from('short'));
      expect((await store.get('k'))?.toString()).toBe('short');
    });

    it('says null for what is not there, also below or above what is', async () => {
      await store.put('a/b', Buffer.from('x'));
      for (const key of ['nothing', 'a', 'a/b/c', 'a/bb']) {
        expect(await store.get(key)).toBeNull();
        expect(await store.head(key)).toBeNull();
      }
      await store.delete('nothing/at/all');
    });

    it('reads a range, and fewer bytes at the end', async () => {
      await store.put('k', Buffer.from('0123456789'));
      expect((await store.get('k', { offset: 2, length: 3 }))?.toString()).toBe('234');
      expect((await store.get('k', { offset: 8, length: 50 }))?.toString()).toBe('89');
      expect((await store.get('k', { offset: 0, length: 10 }))?.toString()).toBe('0123456789');
    });

    it('lists by prefix, in code-point order of the whole key, with sizes', async () => {
      const all = ['a-b', 'a.b/x', 'a/x', 'a/x-y', 'a0', 'b/c/d', 'b/c.d', 'B'];
      for (const key of all) await store.put(key, Buffer.from(key));
      expect(await keys('')).toEqual([...all].sort());
      expect(await keys('a')).toEqual(['a-b', 'a.b/x', 'a/x', 'a/x-y', 'a0']);
      expect(await keys('a/')).toEqual(['a/x', 'a/x-y']);
      expect(await keys('b/c')).toEqual(['b/c.d', 'b/c/d']);
      expect(await keys('none/')).toEqual([]);
      for await (const { key, bytes } of store.list('')) expect(bytes).toBe(key.length);
    });

    it('deletes one key and no other', async () => {
      await store.put('a/b/c', Buffer.from('1'));
      await store.put('a/d', Buffer.from('2'));
      await store.delete('a/b/c');
      expect(await keys('')).toEqual(['a/d']);
      await store.put('a/b/c', Buffer.from('3'));
      expect((await store.get('a/b/c'))?.toString()).toBe('3');
    });

    it('takes many puts at once, of the same key too, and never shows half of one', async () => {
      const texts = Array.from({ length: 20 }, (_, i) => Buffer.alloc(50_000, String.fromCharCode(97 + i)));
      await Promise.all(texts.flatMap((text, i) => [store.put(`many/${i}`, text), store.put('one', text)]));
      expect((await keys('many/')).length).toBe(20);
      const one = await store.get('one');
      expect(texts.some((text) => one?.equals(text))).toBe(true);
    });

    it.each(['', '/a', 'a/', 'a//b', '../a', 'a/../b', '.', 'a/./b', 'a\0b', 'a\\b'])(
      'refuses %j as a key',
      async (key) => {
        await expect(store.put(key, Buffer.from('x'))).rejects.toThrow(RangeError);
        await expect(store.get(key)).rejects.toThrow(RangeError);
        await expect(store.delete(key)).rejects.toThrow(RangeError);
      },
    );

    it('probes without leaving anything', async () => {
      await store.probe();
      expect(await keys('')).toEqual([]);
    });
  });
}
