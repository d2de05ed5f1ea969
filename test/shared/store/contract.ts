// What every store must hold, whatever lies under it: a folder, and S3 on two servers.

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
      expect(await store.head('a/large')).toMatchObject({ bytes: 3_000_000 });
      expect(await store.head('a/empty')).toMatchObject({ bytes: 0 });
    });

    it('overwrites as a whole', async () => {
      await store.put('k', Buffer.from('a long first text'));
      await store.put('k', Buffer.from('short'));
      expect((await store.get('k'))?.toString()).toBe('short');
    });

    it('puts what is new, and never over what is there, also when many try at once', async () => {
      expect(await store.putNew('new/a', Buffer.from('first'))).toBe(true);
      expect(await store.putNew('new/a', Buffer.from('second'))).toBe(false);
      expect((await store.get('new/a'))?.toString()).toBe('first');
      const taken = await Promise.all(
        Array.from({ length: 8 }, (_, i) => store.putNew('new/b', Buffer.from(`number ${i}`))),
      );
      expect(taken.filter(Boolean)).toHaveLength(1);
      expect((await store.get('new/b'))?.toString()).toBe(`number ${taken.indexOf(true)}`);
    });

    it('dates what it has by its own clock', async () => {
      await store.put('old', Buffer.from('1'));
      const old = await store.head('old');
      const listed: number[] = [];
      for await (const { writtenAt } of store.list('')) listed.push(writtenAt);
      // A server dates in seconds.
      expect(Math.abs((old?.writtenAt ?? 0) - Date.now())).toBeLessThan(30_000);
      expect(Math.abs((listed[0] ?? 0) - (old?.writtenAt ?? 0))).toBeLessThan(1_500);
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
      expect(await store.get('k', { offset: 10, length: 5 })).toEqual(Buffer.alloc(0));
      expect(await store.get('k', { offset: 3, length: 0 })).toEqual(Buffer.alloc(0));
      expect(await store.get('nothing', { offset: 3, length: 0 })).toBeNull();
      expect(await store.get('nothing', { offset: 0, length: 3 })).toBeNull();
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

    it('lists more keys than a page of a server holds', async () => {
      const all = Array.from({ length: 110 }, (_, i) => `p/${String(i).padStart(5, '0')}`);
      for (let i = 0; i < all.length; i += 50)
        await Promise.all(all.slice(i, i + 50).map((key) => store.put(key, Buffer.from('x'))));
      expect(await keys('p/')).toEqual(all);
    });

    it('keeps names that need encoding', async () => {
      const odd = ['n/ä ö', 'n/a+b', 'n/a%20b', 'n/a&b=c?d#e', 'n/q\'"<>', 'n/💡', 'n/~!*()'];
      for (const key of odd) await store.put(key, Buffer.from(key));
      expect((await keys('n/')).sort()).toEqual([...odd].sort());
      for (const key of odd) expect((await store.get(key))?.toString()).toBe(key);
      for (const key of odd) await store.delete(key);
      expect(await keys('')).toEqual([]);
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

    it.each(['', '/a', 'a/', 'a//b', '../a', 'a/../b', '.', 'a/./b', 'a\0b', 'a\\b', 'a\ud800', '.tmp/x'])(
      'refuses %j as a key',
      async (key) => {
        await expect(store.put(key, Buffer.from('x'))).rejects.toThrow(RangeError);
        await expect(store.get(key)).rejects.toThrow(RangeError);
        await expect(store.delete(key)).rejects.toThrow(RangeError);
      },
    );

    it('probes without leaving anything', async () => {
      expect(await store.probe()).toEqual({ conditionalPut: true, warnings: [] });
      expect(await keys('')).toEqual([]);
      for await (const { name } of store.unfinishedPuts()) expect(name).toBe('nothing');
    });
  });
}
