// What a new container may be: a box as our own driver asks for it, or one that only lends its files.

import { describe, expect, it } from 'vitest';
import { containerOf } from '../../../src/workers/rollout/engine-gate/body.ts';
import { boxBody } from '../../../src/workers/rollout/sandbox/box-body.ts';
import { seccompProfile } from '../../../src/workers/rollout/sandbox/seccomp.ts';

const SECCOMP = seccompProfile();
const NAME = 'rollout-farm-0123456789abcdef';
type Body = ReturnType<typeof boxBody> & { HostConfig: Record<string, unknown> } & Record<string, unknown>;

function box(change: (body: Body) => void = () => {}): string {
  const body = structuredClone(
    boxBody(
      {
        image: 'rollout-farm/box:abc-def',
        labels: { 'rollout-farm.farm': 'f', 'rollout-farm.worker': 'w', 'rollout-farm.expires': '1' },
        memoryBytes: 256 * 1024 * 1024,
        cpus: 0.7,
        pids: 132,
        runtime: null,
        tmpfs: { '/work': 'rw,nosuid,nodev,exec,size=65536k,nr_inodes=16384,uid=10001,gid=10001,mode=0755' },
      },
      SECCOMP,
    ),
  ) as Body;
  change(body);
  return JSON.stringify(body);
}

const ask = (text: string, name: string | null = NAME) => containerOf(text, name, SECCOMP);

describe('a container through the gate', () => {
  it('is the box that was asked for, marked as made here', () => {
    const answer = ask(box());
    expect(answer).toMatchObject({ status: 'allowed', made: 'box' });
    const sent = JSON.parse(answer.status === 'allowed' ? answer.body : '{}') as Body;
    const { 'rollout-farm.gate': mark, ...labels } = sent.Labels as Record<string, string>;
    expect(mark).toBe('box');
    expect({ ...sent, Labels: labels }).toEqual(JSON.parse(box()));
  });

  const hostile: Record<string, (body: Body) => void> = {
    'a folder of the machine': (b) => (b.HostConfig.Binds = ['/:/host']),
    'a mount': (b) => (b.HostConfig.Mounts = [{ Type: 'bind', Source: '/', Target: '/host' }]),
    'a volume': (b) => (b.Volumes = { '/x': {} }),
    'other containers’ volumes': (b) => (b.HostConfig.VolumesFrom = ['redis']),
    privileges: (b) => (b.HostConfig.Privileged = true),
    'a capability more': (b) => b.HostConfig.CapAdd.push('SYS_ADMIN'),
    'no capability less': (b) => (b.HostConfig.CapDrop = []),
    'a device': (b) => (b.HostConfig.Devices = [{ PathOnHost: '/dev/sda', PathInContainer: '/dev/sda' }]),
    'device requests': (b) => (b.HostConfig.DeviceRequests = [{ Count: -1 }]),
    'device rules': (b) => (b.HostConfig.DeviceCgroupRules = ['a *:* rwm']),
    'the machine’s network': (b) => (b.HostConfig.NetworkMode = 'host'),
    'a network': (b) => (b.NetworkingConfig = { EndpointsConfig: { farm_data: {} } }),
    'a network after all': (b) => Object.assign(b, { NetworkDisabled: false }),
    'a port': (b) => (b.HostConfig.PortBindings = { '80/tcp': [{ HostPort: '80' }] }),
    'the machine’s processes': (b) => (b.HostConfig.PidMode = 'host'),
    'another’s memory': (b) => (b.HostConfig.IpcMode = 'host'),
    'the machine’s users': (b) => (b.HostConfig.UsernsMode = 'host'),
    'the machine’s cgroup': (b) => (b.HostConfig.CgroupParent = '/'),
    'the machine’s cgroups': (b) => (b.HostConfig.CgroupnsMode = 'host'),
    'no seccomp': (b) => (b.HostConfig.SecurityOpt = ['no-new-privileges', 'seccomp=unconfined']),
    'new privileges': (b) => b.HostConfig.SecurityOpt.shift(),
    'apparmor off': (b) => b.HostConfig.SecurityOpt.push('apparmor=unconfined'),
    'masked paths': (b) => (b.HostConfig.MaskedPaths = []),
    'a writable root': (b) => (b.HostConfig.ReadonlyRootfs = false),
    'no end of processes': (b) => (b.HostConfig.PidsLimit = -1),
    'no end of memory': (b) => (b.HostConfig.Memory = 0),
    'swap without end': (b) => (b.HostConfig.MemorySwap = -1),
    'a kernel setting': (b) => Object.assign(b.HostConfig.Sysctls, { 'kernel.shmmax': '99999999999' }),
    'a log on the machine’s disk': (b) => (b.HostConfig.LogConfig = { Type: 'json-file', Config: {} }),
    'a start by itself': (b) => (b.HostConfig.RestartPolicy = { Name: 'always' }),
    'a hook of the runtime by annotation': (b) => (b.HostConfig.Annotations = { 'run.oci.handler': 'x' }),
    'a tmpfs where programs are': (b) => (b.HostConfig.Tmpfs = { '/usr': 'rw,nosuid,nodev,exec,size=1k,nr_inodes=1' }),
    'a tmpfs with devices': (b) => (b.HostConfig.Tmpfs = { '/work': 'rw,dev,suid,exec,size=1k,nr_inodes=1' }),
    'an endless tmpfs': (b) => (b.HostConfig.Tmpfs = { '/work': 'rw,nosuid,nodev,exec' }),
    'another user': (b) => Object.assign(b, { User: '1000' }),
    'a command': (b) => (b.Cmd = ['/bin/sh']),
    'an entry point': (b) => (b.Entrypoint = ['/bin/sh']),
    'an environment': (b) => (b.Env = ['LD_PRELOAD=/x']),
    'no owner': (b) => Object.assign(b, { Labels: { 'rollout-farm.farm': 'f' } }),
    'a label of somebody else’s': (b) => Object.assign(b.Labels, { 'com.docker.compose.project': 'x' }),
    'a key in another spelling': (b) => (b.hostconfig = { Privileged: true }),
    'a key in another spelling, deeper': (b) => (b.HostConfig.privileged = true),
  };
  for (const [what, change] of Object.entries(hostile))
    it(`has not ${what}`, () => {
      expect(ask(box(change))).toMatchObject({ status: 'refused' });
    });

  it('cannot be two things to two readers: what goes on is written anew', () => {
    const doubled = box().replace('"Privileged":false', '"Privileged":true,"Privileged":false');
    const answer = ask(doubled);
    expect(answer.status === 'allowed' && answer.body.includes('true,"Privileged"')).toBe(false);
    for (const text of ['', 'null', '[]', '"x"', '{"HostConfig": []}', '{']) expect(ask(text).status).toBe('refused');
    // A mark that is brought along is not believed.
    const marked = ask(box((b) => Object.assign(b.Labels, { 'rollout-farm.gate': 'graft' })));
    expect(marked.status === 'allowed' && JSON.parse(marked.body).Labels['rollout-farm.gate']).toBe('box');
  });

  it('without a name only lends its files: it has no network, and nothing beside an image', () => {
    const lent = ask('{"Image": "debian", "Cmd": ["/"]}', null);
    expect(lent).toMatchObject({ status: 'allowed', made: 'graft' });
    expect(lent.status === 'allowed' && JSON.parse(lent.body)).toMatchObject({ HostConfig: { NetworkMode: 'none' } });
    for (const more of [
      '"HostConfig": {"Privileged": true}',
      '"Entrypoint": ["/bin/sh"]',
      '"Volumes": {}',
      '"Labels": {}',
    ])
      expect(ask(`{"Image": "debian", "Cmd": ["/"], ${more}}`, null).status, more).toBe('refused');
    expect(ask('{"Image": "debian", "Cmd": ["/bin/sh"]}', null).status).toBe('refused');
  });
});
