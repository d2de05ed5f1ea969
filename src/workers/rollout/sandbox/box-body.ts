// What the engine is told of a box: the whole of its hardening in one place, so that whoever stands between a worker and the
// engine (engine-gate/) can say what a box is, and refuse everything else.

export interface ContainerPlan {
  name: string;
  image: string;
  labels: Record<string, string>;
  memoryBytes: number;
  cpus: number;
  pids: number;
  /** Null: the engine's default. */
  runtime: string | null;
  /** Mount options by folder; each is a tmpfs. */
  tmpfs: Record<string, string>;
}

/** Shared memory of System V belongs to no process, so the kernel could free it by killing only the runner: it has to be little.
 *  Closed connections are forgotten at once: they would outlive their processes, and a reset, by a minute. */
const KERNEL_SETTINGS = {
  'kernel.shmmax': String(16 * 1024 * 1024),
  'kernel.shmall': String((16 * 1024 * 1024) / 4096),
  'kernel.shmmni': '64',
  'kernel.msgmni': '16',
  'kernel.sem': '250 3200 32 32',
  'net.ipv4.tcp_max_tw_buckets': '0',
};

/** A box's share is dealt out in short turns: within a turn its threads may have every processor, and whoever is beside it waits so long. */
const TURN_US = 20_000;
/** No engine deals out less than this in a turn. */
const LEAST_US = 1_000;

/** At most `cpus`, and the weight of so many against others. */
function cpuShare(cpus: number): { CpuPeriod: number; CpuQuota: number; CpuShares: number } {
  const period = Math.min(1_000_000, Math.max(TURN_US, Math.ceil(LEAST_US / cpus)));
  return {
    CpuPeriod: period,
    CpuQuota: Math.max(LEAST_US, Math.round(period * cpus)),
    CpuShares: Math.max(2, Math.round(1024 * cpus)),
  };
}

/** The body of the call that creates it. */
export function boxBody(plan: Omit<ContainerPlan, 'name'>, seccomp: string) {
  return {
    Image: plan.image,
    Labels: plan.labels,
    Hostname: 'box',
    User: '0:0',
    WorkingDir: '/',
    Tty: false,
    OpenStdin: true,
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    NetworkDisabled: true,
    HostConfig: {
      AutoRemove: true,
      CapDrop: ['ALL'],
      CapAdd: ['SETUID', 'SETGID'],
      SecurityOpt: ['no-new-privileges', `seccomp=${seccomp}`],
      ...(plan.runtime === null ? {} : { Runtime: plan.runtime }),
      Privileged: false,
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      IpcMode: 'private',
      Init: false,
      LogConfig: { Type: 'none', Config: {} },
      Memory: plan.memoryBytes,
      MemorySwap: plan.memoryBytes,
      ...cpuShare(plan.cpus),
      PidsLimit: plan.pids,
      Tmpfs: plan.tmpfs,
      Sysctls: KERNEL_SETTINGS,
      Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
    },
  };
}
