// What the engine gate lets through, before any engine is asked: the farm's own calls, in one spelling.

import { describe, expect, it } from 'vitest';
import { judge } from '../../../src/workers/rollout/engine-gate/rules.ts';

const refused = (method: string, url: string): boolean => judge(method, url).asked.kind === 'refused';
const filters = (value: unknown): string => encodeURIComponent(JSON.stringify(value));
const BOX = 'rollout-farm-0123456789abcdef';

describe('the engine gate’s rules', () => {
  it('know no call that our driver does not make', () => {
    for (const [method, url] of [
      ['POST', `/containers/${BOX}/exec`],
      ['POST', '/exec/abc/start'],
      ['POST', `/containers/${BOX}/update`],
      ['POST', `/containers/${BOX}/kill`],
      ['GET', `/containers/${BOX}/export`],
      ['GET', `/containers/${BOX}/logs?stdout=1`],
      ['POST', '/build'],
      ['POST', '/images/create?fromImage=x'],
      ['POST', '/images/load'],
      ['GET', '/images/rollout-farm/python/get'],
      ['POST', '/volumes/create'],
      ['GET', '/volumes'],
      ['POST', '/networks/create'],
      ['POST', '/plugins/pull'],
      ['POST', '/swarm/init'],
      ['GET', '/secrets'],
      ['POST', '/session'],
      ['POST', '/grpc'],
      ['POST', '/containers/prune'],
      ['CONNECT', 'host:80'],
      ['PATCH', '/info'],
    ] as const)
      expect(refused(method, url), `${method} ${url}`).toBe(true);
  });

  it('do not take one path for another', () => {
    for (const url of [
      '/images/x/../../containers/y/json',
      '/images/%2e%2e/json',
      '/images//json',
      '/images/x%00/json',
      '/containers/../info/json',
      '/containers/a%2Fb/json',
      '/v1.41/v1.41/info',
      '//info',
      'http://engine/info',
      '/info/',
    ])
      expect(refused('GET', url), url).toBe(true);
  });

  it('pass on calls without the version that was named and without keys that they do not know', () => {
    expect(judge('POST', `/v1.18/containers/${BOX}/start?detachKeys=x&t=1`).target).toBe(`/containers/${BOX}/start`);
    expect(judge('POST', `/containers/${BOX}/wait?condition=removed&x=1`).target).toBe(
      `/containers/${BOX}/wait?condition=removed`,
    );
    expect(judge('POST', `/containers/create?name=${BOX}&platform=windows`).target).toBe(
      `/containers/create?name=${BOX}`,
    );
  });

  it('refuse a key that is given twice: two readers may take two values for it', () => {
    expect(refused('POST', '/images/abc/tag?repo=rollout-farm/box&repo=debian')).toBe(true);
    expect(refused('POST', `/containers/create?name=${BOX}&name=other`)).toBe(true);
    expect(judge('POST', '/commit?container=abc&changes=CMD+[]&changes=USER+0').asked).toMatchObject({
      container: 'abc',
    });
  });

  it('pass a body on for a new container and for files, and for nothing else', () => {
    const withBody = [
      ['POST', `/containers/create?name=${BOX}`],
      ['PUT', '/containers/abc/archive?path=/'],
      ['POST', `/containers/${BOX}/start`],
      ['POST', '/commit?container=abc'],
      ['POST', '/images/abc/tag?repo=rollout-farm/box&tag=1'],
    ].map(([method = '', url = '']) => judge(method, url).withBody);
    expect(withBody).toEqual([true, true, false, false, false]);
  });

  it('tell of boxes and of the images of boxes only', () => {
    const farm = filters({ label: ['rollout-farm.farm=abc'] });
    expect(judge('GET', `/containers/json?all=true&filters=${farm}`).asked.kind).toBe('plain');
    for (const one of [
      {},
      { label: [] },
      { label: ['other=1'] },
      { label: ['rollout-farm.farm=abc', 'x'] },
      { name: ['x'] },
    ])
      expect(refused('GET', `/containers/json?filters=${filters(one)}`), JSON.stringify(one)).toBe(true);
    expect(refused('GET', '/containers/json')).toBe(true);
    expect(refused('GET', '/containers/json?filters=nonsense')).toBe(true);
    expect(judge('GET', `/images/json?filters=${filters({ label: ['rollout-farm.box=x'] })}`).asked.kind).toBe('plain');
    expect(refused('GET', '/images/json')).toBe(true);
    const events = filters({ container: [BOX], event: ['die'] });
    expect(judge('GET', `/events?since=1&until=2&filters=${events}`).asked.kind).toBe('plain');
    expect(refused('GET', `/events?since=1&filters=${events}`)).toBe(true);
    expect(refused('GET', '/events?since=1&until=2')).toBe(true);
    expect(refused('POST', '/images/abc/tag?repo=debian&tag=latest')).toBe(true);
    expect(refused('POST', '/containers/create?name=postgres')).toBe(true);
  });
});
