// What the reference cases of the trainers' adapters do not show: keys in the URL, and a body's encodings to the byte.

import { describe, expect, test } from 'vitest';
import { decodeJsonBytes } from '../../src/gateway/mapping/json-bytes.ts';
import { isAuthorized, readRewardRequest } from '../../src/gateway/mapping/openrlhf.ts';
import { rewardsOf } from '../../src/gateway/mapping/reward-call.ts';

const basic = (pair: string): { authorization: string } => ({
  authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
});

describe('a key', () => {
  test('may come as bearer, as header or as the password of the URL, and any of several fits', () => {
    const keys = ['old-key', 'new-key'];
    expect(isAuthorized({ authorization: 'Bearer new-key' }, keys)).toBe(true);
    expect(isAuthorized({ apiKey: 'old-key' }, keys)).toBe(true);
    expect(isAuthorized(basic('trainer:new-key'), keys)).toBe(true);
    expect(isAuthorized(basic('trainer:with:colons'), ['with:colons'])).toBe(true);
  });

  test('that is empty, cut or in the wrong place fits nothing', () => {
    for (const head of [
      {},
      { apiKey: '' },
      { authorization: 'Bearer ' },
      basic('new-key:'),
      basic('new-key'),
      { apiKey: 'new-ke' },
    ])
      expect(isAuthorized(head, ['new-key'])).toBe(false);
  });
});

describe('the bytes of a body', () => {
  test.each(['utf8', 'utf16le'] as const)('are read as %s', (encoding) => {
    expect(decodeJsonBytes(Buffer.from('["é🐝"]', encoding))).toBe('["é🐝"]');
  });

  test('may hold surrogates that stand alone, which strict UTF-8 refuses', () => {
    expect(decodeJsonBytes(Buffer.from([0x22, 0xed, 0xa0, 0xbd, 0x22]))).toBe('"\ud83d"');
  });

  test('that are no text are no request', () => {
    for (const bytes of [
      [0x22, 0xff, 0x22],
      [0, 0, 0xfe, 0xff, 0, 0x22],
      [0xff, 0xfe, 0x22],
    ])
      expect(decodeJsonBytes(Buffer.from(bytes))).toBeNull();
    expect(readRewardRequest(Buffer.from([0xff]))).toMatchObject({ status: 400 });
  });
});

test('a conversation that breaks off costs its own item the floor, not the batch', () => {
  const call = readRewardRequest(Buffer.from('{"query": [[{"content": "x"}, 3], "tail"]}'));
  expect(call).toMatchObject({ completions: [null, 'tail'] });
});

test('a reward that is no number floors all, one that is not finite only its item', () => {
  expect(rewardsOf([1n, 'half'], 2, -1)).toEqual([-1, -1]);
  expect(rewardsOf([Number.NaN, '0.5'], 2, -1)).toEqual([-1, 0.5]);
});
