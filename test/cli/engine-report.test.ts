import { describe, expect, test } from 'vitest';
import { describeEngine } from '../../src/cli/engine-report.ts';

const INFO = {
  ServerVersion: '20.10.24',
  CgroupVersion: '2',
  Runtimes: { runc: {}, 'io.containerd.runc.v2': {}, runsc: {} },
  DefaultRuntime: 'runc',
  SecurityOptions: ['name=apparmor', 'name=seccomp,profile=default', 'name=userns', 'name=cgroupns'],
  DockerRootDir: '/var/lib/docker',
  MemoryLimit: true,
  SwapLimit: true,
  CpuCfsQuota: true,
  PidsLimit: true,
};

describe('what doctor says of an engine', () => {
  test('names its version, its cgroups, its runtimes, gVisor, the filter, remapped users and its disk', () => {
    expect(describeEngine(INFO, 12)).toBe(
      'Docker 20.10.24; cgroup v2; runtimes runc, runsc (default runc); gVisor there: sandbox.runtime: runsc; seccomp; userns-remap on; in /var/lib/docker, 12 GB free',
    );
  });

  test('names what it lacks', () => {
    const poor = { ...INFO, Runtimes: { runc: {} }, SecurityOptions: null, SwapLimit: false, PidsLimit: false };
    const said = describeEngine(poor, null);
    expect(said).toContain('WITHOUT LIMITS ON swap, processes');
    expect(said).toContain('no gVisor');
    expect(said).toContain('NO SECCOMP');
    expect(said).toContain('userns-remap off');
  });

  test('says so where an engine answers with something else', () => {
    expect(describeEngine({}, null)).toContain('not understood (ServerVersion)');
  });
});
