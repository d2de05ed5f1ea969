// REDIS_URL at the door: what it can say, and what is said of one that says something else.

import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { knownSecrets } from '../../../src/shared/config.ts';
import { FarmError } from '../../../src/shared/errors.ts';
import { readRedisUrl } from '../../../src/shared/redis/address.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'farm-test-address-'));
});
afterAll(() => rm(folder, { recursive: true }));

const plain = { tls: null, family: 0 };

describe('an address', () => {
  test.each([
    ['redis://h', { kind: 'server', host: 'h', port: 6379, db: 0, shown: 'redis://h' }],
    ['redis://:p%40w@h:1/2', { kind: 'server', password: 'p@w', host: 'h', port: 1, db: 2, shown: 'redis://h:1/2' }],
    ['redis://u:p@[::1]:7', { kind: 'server', username: 'u', host: '::1', port: 7, shown: 'redis://[::1]:7' }],
    ['redis://h?family=6', { kind: 'server', family: 6, shown: 'redis://h' }],
    ['unix:///run/r.sock', { kind: 'socket', path: '/run/r.sock', shown: 'unix:///run/r.sock' }],
    ['unix://:pw@/run/r.sock', { kind: 'socket', password: 'pw', path: '/run/r.sock', shown: 'unix:///run/r.sock' }],
    [
      'redis+cluster://u:p@a:1,b,[::1]:3',
      {
        kind: 'cluster',
        username: 'u',
        password: 'p',
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 6379 },
          { host: '::1', port: 3 },
        ],
        shown: 'redis+cluster://a:1,b,[::1]:3',
      },
    ],
    [
      'redis+sentinel://:p@a,b:2/main/3?sentinel_username=s&sentinel_password=q%26',
      {
        kind: 'sentinel',
        password: 'p',
        hosts: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 2 },
        ],
        name: 'main',
        db: 3,
        sentinel: { username: 's', password: 'q&' },
        shown: 'redis+sentinel://a,b:2/main/3',
      },
    ],
    ['redis-sentinel://a/m', { kind: 'sentinel', name: 'm', db: 0, sentinel: {} }],
  ])('%s', (url, expected) => {
    expect(readRedisUrl(url)).toMatchObject({ ...plain, ...expected });
  });

  it('has TLS by its first word, with system authorities where it names none', () => {
    for (const url of ['rediss://h', 'rediss+cluster://h', 'rediss+sentinel://h/m', 'rediss://h?servername=x.test'])
      expect(readRedisUrl(url).tls).toEqual(url.includes('?') ? { servername: 'x.test' } : {});
  });

  it('keeps every secret in it out of what is shown and logged', () => {
    const url = 'redis+sentinel://user:first%40secret@a:1,b:2/m?sentinel_password=second%26secret';
    expect(JSON.stringify(readRedisUrl(url).shown)).not.toMatch(/secret/);
    expect(knownSecrets({ REDIS_URL: url }).sort()).toEqual(
      ['first%40secret', 'first@secret', 'second%26secret', 'second&secret'].sort(),
    );
  });
});

describe('is refused with exit 3, without a secret, with what is allowed', () => {
  test.each([
    ['several hosts of one server', 'redis://:secret@a,b', /several hosts/, /redis\+cluster/],
    ['a port that is none', 'redis://:secret@a:99999', /port/, /6379/],
    ['a host that is none', 'redis+cluster://:secret@a,b c', /host/, /redis\+cluster/],
    ['Sentinels without a master', 'redis+sentinel://:secret@a:1', /which master/, /NAME/],
    ['a database of a cluster', 'redis+cluster://:secret@a:1/2', /database/, /redis/],
    ['an unknown parameter', 'redis://:secret@a?tls=false', /tls/, /family/],
    ['a parameter twice', 'rediss://:secret@a?ca=1&ca=2', /twice/, /redis/],
    ['a CA without TLS', 'redis://:secret@a?ca=/x', /no TLS/, /rediss/],
    ['a Sentinel’s password of a cluster', 'redis+cluster://a?sentinel_password=secret', /no Sentinels/, /sentinel_/],
    ['a certificate without its key', 'rediss://:secret@a?cert=/x', /no key/, /both/],
    ['a CA that is not there', 'rediss://:secret@a?ca=/nowhere/ca.pem', /ca cannot be read/, /PEM/],
    ['a socket without a path', 'unix://', /socket/, /unix:/],
    ['a scheme of another kind', 'redis+proxy://:secret@a', /redis\+proxy/, /redis\+sentinel/],
  ])('%s', (_, url, message, hint) => {
    const fault = thrown(() => readRedisUrl(url));
    expect(fault).toMatchObject({ exit: 3 });
    expect(fault.code).toMatch(/^redis_(url|tls_files)$/);
    expect(fault.message).toMatch(message);
    expect(fault.hint).toMatch(hint);
    expect(`${fault.message} ${fault.hint}`).not.toContain('secret');
  });

  it.each(['ca', 'cert'])('a file named as %s that holds no such thing', (name) => {
    const file = path.join(folder, 'garbage.pem');
    writeFileSync(file, 'not a certificate');
    const more = name === 'cert' ? `&key=${file}` : '';
    const fault = thrown(() => readRedisUrl(`rediss://h?${name}=${file}${more}`));
    expect(fault).toMatchObject({ code: 'redis_tls_files', exit: 3 });
    expect(fault.message).toContain(name);
  });
});

function thrown(act: () => unknown): FarmError {
  try {
    act();
  } catch (error) {
    if (error instanceof FarmError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}
