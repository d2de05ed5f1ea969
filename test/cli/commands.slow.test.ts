// Whole commands that need no sandbox: what they print, and how they end on what they cannot use.

import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';
import { TestFarm } from '../support/farm.ts';
import { freePort } from '../support/port.ts';
import { quickSpec } from '../support/run-specs.ts';
import { until } from '../support/until.ts';

let farm: TestFarm;
let spec: string;
let results: string;
let records: GroupRecord[];
beforeAll(async () => {
  farm = new TestFarm();
  spec = quickSpec(farm);
  expect(await farm.run('run', spec, '--run-id', 'q')).toMatchObject({ code: 0, stdout: 'q\n' });
  results = (await farm.run('results', 'q')).stdout;
  records = results
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as GroupRecord);
});
afterAll(() => farm.close());

describe.concurrent('a command that cannot use what it was given', () => {
  it.each([
    ['an unknown verb', ['rum'], 2, /rum/],
    ['an unknown option', ['status', '--jsom'], 2, /--jsom/],
    ['no argument where one is needed', ['run'], 2, /SPEC/],
    ['a number that is none', ['run', 'x.yaml', '--workers', '0'], 2, /whole number/],
    ['status of an unknown run', ['status', 'nobody'], 2, /nobody/],
    ['results of an unknown run', ['results', 'nobody'], 2, /nobody/],
    ['cancel of an unknown run', ['cancel', 'nobody'], 2, /nobody/],
    ['rm of an unknown run', ['rm', 'nobody'], 2, /nobody/],
    ['verify-run of an unknown run', ['verify-run', 'nobody'], 2, /nobody/],
    ['replay of an unknown run', ['replay', 'nobody'], 2, /nobody/],
    ['a run id that leads elsewhere', ['status', '../../etc'], 2, /etc/],
    ['a cursor of another run', ['results', 'q', '--after', 'abc123-1'], 2, /--after/],
    ['a cursor that is none', ['results', 'q', '--after', 'x y'], 2, /--after/],
    ['a file that is not there', ['check', '/nowhere/x.yaml'], 2, /nowhere/],
    ['an unknown role', ['worker', 'cook'], 2, /cook/],
    ['detaching where there are no workers', ['run', 'SPEC', '--detach'], 3, /farm up/],
  ])('ends with one message and no stack trace: %s', async (_, args, code, message) => {
    const ended = await farm.run(...args.map((arg) => (arg === 'SPEC' ? spec : arg)));
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).not.toMatch(/^\s+at .*\(|node:internal|should not have happened/m);
    expect(ended.stderr.trim().split('\n').length).toBeLessThan(5);
  });

  it('refuses a cursor of the future', async () => {
    const cursor = records.at(-1)?.cursor.replace(/\d+$/, '13') as string;
    expect(await farm.run('results', 'q', '--after', cursor)).toMatchObject({ code: 2, stdout: '' });
  });
});

describe.concurrent('a command that misses something', () => {
  const elsewhere = (env: Record<string, string>) => {
    const other = new TestFarm(env);
    const file = quickSpec(other);
    const ended = other.run('run', file, '--run-id', 'x').finally(() => other.close());
    return ended;
  };

  it('says that Redis does not answer, without its password', async () => {
    const ended = await elsewhere({ REDIS_URL: `redis://:canary%40pw@127.0.0.1:${await freePort()}` });
    expect(ended).toMatchObject({ code: 3, stdout: '' });
    expect(ended.stderr).toMatch(/does not answer/);
    expect(ended.stderr).not.toMatch(/canary/);
  });

  it('says that the store cannot be written', async () => {
    const place = path.join(farm.data, 'a-file');
    writeFileSync(place, '');
    const ended = await elsewhere({ FARM_STORE: path.join(place, 'store') });
    expect(ended).toMatchObject({ code: 3, stdout: '' });
    expect(ended.stderr).toMatch(/a-file/);
  });
});

describe('results', () => {
  it('are closed groups with figures, and go on after any cursor', async () => {
    expect(records.map((r) => r.group).sort((a, b) => a - b)).toEqual([...Array(12).keys()]);
    for (const at of [0, 5, 11]) {
      const { stdout } = await farm.run('results', 'q', '--after', records[at]?.cursor as string);
      expect(stdout).toBe(
        results
          .split('\n')
          .slice(at + 1)
          .join('\n'),
      );
    }
  });

  it('that nobody reads to the end do not make the command fail', async () => {
    const command = farm.start('results', 'q');
    command.process.stdout?.destroy();
    expect(await command.ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('status and soundness are the same from the store when Redis has forgotten everything', async () => {
    const status = (await farm.run('status', 'q', '--json')).stdout;
    expect(JSON.parse(status)).toMatchObject({ run: 'q', state: 'done', members: { completed: 48 } });
    await farm.gone();
    rmSync(path.join(farm.data, 'redis'), { recursive: true });
    expect(await farm.run('results', 'q')).toMatchObject({ code: 0, stdout: results });
    const cursor = records[5]?.cursor as string;
    expect((await farm.run('results', 'q', '--after', cursor)).stdout).toBe(results.split('\n').slice(6).join('\n'));
    expect((await farm.run('results', 'q', '--after', 'abc123-1')).code).toBe(2);
    expect((await farm.run('results', 'q', '--follow')).stdout).toBe(results);
    expect(JSON.parse((await farm.run('status', 'q', '--json')).stdout)).toEqual(JSON.parse(status));
    expect((await farm.run('verify-run', path.join(farm.data, 'store/runs/q'))).code).toBe(0);
    // And the same id again is the same run: nothing is done again.
    expect(await farm.run('run', spec, '--run-id', 'q')).toMatchObject({ code: 0 });
    expect((await farm.run('results', 'q')).stdout).toBe(results);
  });
});

describe('a farm that has nothing to do', () => {
  it('lists nothing, and leaves no process', async () => {
    const empty = new TestFarm();
    try {
      expect(await empty.run('runs', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
      expect(await empty.run('status', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
      const top = empty.start('worker', 'collect');
      await until('it is ready', () => top.stderr.includes('ready'));
      top.signalGroup('SIGTERM');
      expect([130, 143]).toContain((await top.ended).code);
      await empty.gone();
    } finally {
      await empty.close();
    }
  });
});
