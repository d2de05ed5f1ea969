// Whole commands with a store in S3: a run that is killed and goes on, read back by its address; and every way in which
// the store cannot be used, named before anything starts.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { findingOf } from '../support/doctor.ts';
import { TestFarm } from '../support/farm.ts';
import { killAll } from '../support/processes.ts';
import { quickSpec, slowSpec } from '../support/run-specs.ts';
import { KEYS, NO_CLOUD, REGION, startVersitygw, type Versitygw } from '../support/s3-server.ts';
import { until } from '../support/until.ts';

let server: Versitygw;
beforeAll(async () => {
  server = await startVersitygw();
});
afterAll(() => server.close());

let farm: TestFarm;
let prefixes = 0;
let store: string;
beforeEach(() => {
  store = `s3://${server.bucket}/cli-${++prefixes}`;
  farm = new TestFarm({ ...server.env, FARM_STORE: store });
});
afterEach(() => farm.close());

describe('a run whose store is in S3', () => {
  it('goes on after everything was killed, and is read back by its address alone', async () => {
    const spec = slowSpec(farm, { groups: 5, size: 4, seconds: 1 });
    const command = farm.start('run', spec, '--run-id', 'one');
    const accepted = async (): Promise<number> => {
      const { code, stdout } = await farm.run('status', 'one', '--json');
      return code === 0 ? (JSON.parse(stdout) as { members: { accepted: number } }).members.accepted : 0;
    };
    await until('the run is at work', accepted, { withinMs: 90_000 });
    killAll(farm.processes);
    await command.ended;
    const again = await farm.run('run', spec, '--run-id', 'one');
    expect(again, again.stderr).toMatchObject({ code: 0 });
    const results = await farm.run('results', 'one');
    expect(results.stdout.trim().split('\n')).toHaveLength(5);

    // Another machine, which knows nothing but the store.
    const other = new TestFarm({ ...server.env, FARM_STORE: store });
    try {
      const address = `${store}/runs/one`;
      expect(await other.run('verify-run', address)).toMatchObject({ code: 0 });
      expect((await other.run('results', 'one')).stdout).toBe(results.stdout);
      const replayed = await other.run('replay', address, '--json');
      expect(replayed, replayed.stderr).toMatchObject({ code: 0 });
      expect((await other.run('runs')).stdout).toContain('one  done');
      const exported = await other.run(
        'export',
        address,
        '--format',
        'records',
        '--out',
        other.file('records.jsonl', ''),
      );
      expect(exported, exported.stderr).toMatchObject({ code: 0 });
      expect(await other.run('store', 'gc', '--dry-run', '--json')).toMatchObject({ code: 0 });
      await other.gone();
    } finally {
      await other.close();
    }
    expect(await farm.run('rm', 'one')).toMatchObject({ code: 0 });
    expect(await farm.run('verify-run', `${store}/runs/one`)).toMatchObject({ code: 2 });
  });

  it.each([
    ['the bucket is not there', { FARM_STORE: 's3://nobody-made-this' }, 3, /no such bucket.*NoSuchBucket/],
    ['the key is unknown', { AWS_ACCESS_KEY_ID: 'nobody' }, 3, /credentials.*InvalidAccessKeyId/],
    ['the secret is another', { AWS_SECRET_ACCESS_KEY: 'other' }, 3, /credentials.*SignatureDoesNotMatch/],
    ['there are no credentials', { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }, 3, /credentials/],
    ['the region is another', { AWS_REGION: 'eu-west-1' }, 3, /region.*us-east-1/],
    ['nobody answers at the endpoint', { S3_ENDPOINT: 'http://127.0.0.1:1' }, 3, /does not answer.*ECONNREFUSED/],
    ['the endpoint is no address', { S3_ENDPOINT: 'nonsense' }, 2, /S3_ENDPOINT=nonsense/],
    ['the address is none', { FARM_STORE: 's3://B' }, 2, /bucket/],
  ])('is refused before anything starts where %s', async (_, env, code, says) => {
    const bad = new TestFarm({
      ...KEYS,
      ...NO_CLOUD,
      AWS_REGION: REGION,
      S3_ENDPOINT: server.endpoint,
      FARM_STORE: store,
      ...env,
    });
    try {
      const ended = await bad.run('run', quickSpec(bad));
      expect(ended).toMatchObject({ code, stdout: '' });
      expect(ended.stderr).toMatch(says);
      const told = await findingOf(bad, 'store');
      expect(told.code).toBe(3);
      expect(told.finding).toMatchObject({
        ok: false,
        found: expect.stringMatching(says),
        hint: expect.any(String),
      });
      await bad.gone();
    } finally {
      await bad.close();
    }
  });
});
