// The sandbox contract. A box holds one episode's untrusted processes and files; it is opened from an image,
// runs commands one after another, and is closed. What a command does is a result, never an exception; BoxLost is
// thrown when the box itself is gone, and says whose doing that seems to be.
// The Docker driver and the plain-subprocess driver (trusted, scripted use only) pass one contract suite.

export interface SandboxLimits {
  image: string;
  memoryMb: number;
  cpus: number;
  pids: number;
  tmpfsMb: number;
  /** Only `none` today. */
  network: 'none';
  /** Bound of one command, ms. */
  timeoutMs: number;
  /** Kept of stdout and of stderr, each, in bytes; the rest is counted and dropped while it streams. */
  outputBytes: number;
}

/** What a spec without `sandbox` means, and what episodes outside a run get. */
export const DEFAULT_LIMITS: Readonly<SandboxLimits> = {
  image: 'rollout-farm/python',
  memoryMb: 256,
  cpus: 1,
  pids: 128,
  tmpfsMb: 64,
  network: 'none',
  timeoutMs: 10_000,
  outputBytes: 256 * 1024,
};

export interface Command {
  /** Never through a shell. An empty list, an empty program name or a NUL byte is a launch error in the result. */
  argv: string[];
  stdin?: Uint8Array;
  /** The whole environment of the command beside PATH, HOME, LANG, PYTHONHASHSEED=0 and PYTHONDONTWRITEBYTECODE=1. */
  env?: Record<string, string>;
  timeoutMs: number;
  outputBytes: number;
  signal?: AbortSignal;
}

export interface CommandResult {
  /** `exit`: ended by itself with `exitCode`. `signal`: ended by `signalNumber`. `timeout`: everything in the box was killed.
   *  `launch`: could not be started, `launchError` has errno's name. */
  cause: 'exit' | 'signal' | 'timeout' | 'launch';
  /** The program's status; −N for a signal N, −1 for a timeout or a launch error (crucible's convention). */
  exitCode: number;
  launchError: { code: string; message: string } | null;
  stdout: Buffer;
  stderr: Buffer;
  /** How many bytes came in all, kept or not. */
  stdoutBytes: number;
  stderrBytes: number;
  /** The cgroup killed something of this command for memory. */
  oomKilled: boolean;
  /** Forks were refused by the pids limit while it ran. */
  pidsExceeded: boolean;
  /** Wall time of the command itself, ms. */
  wallMs: number;
}

/** Files of the work folder as bytes; `truncated` where a cap on bytes, entries or depth cut the listing. */
export interface Listing {
  files: Map<string, Buffer>;
  truncated: boolean;
}

export interface Box {
  /** Image id, for the certificate. */
  readonly imageId: string;
  readonly runnerHash: string | null;
  readonly isolation: 'fresh' | 'subprocess';
  /** Milliseconds from asking to ready: left out of a member's `seconds`. */
  readonly startMs: number;
  /** Writes files (relative path → content) into the work folder, making parents. A path that leaves it is refused: { escaped: path }. Links are not followed. */
  write(
    files: ReadonlyMap<string, Uint8Array>,
  ): Promise<{ ok: true } | { ok: false; path: string; reason: 'escape' | 'disk' | 'other'; message: string }>;
  /** Runs one command in the work folder. When it ends, by itself or not, everything it left running is killed before this returns. */
  run(command: Command): Promise<CommandResult>;
  /** Regular files under the work folder (relative POSIX paths, code-point order), read without following links. */
  read(caps: { maxBytes: number; maxEntries: number }): Promise<Listing>;
  /** Kills everything and empties the work folder, /tmp and shared memory. Throws BoxLost if anything survived: the box must then be closed. */
  reset(): Promise<void>;
  /** Ends the box and waits until it is gone. Idempotent, never throws. */
  close(): Promise<void>;
}

/** The box is gone. `blame` is a judgement: `engine` (start failed, engine or host trouble: retry elsewhere), `action` (it died under a command while the engine is well). */
export class BoxLost extends Error {
  readonly phase: 'start' | 'run';
  readonly blame: 'engine' | 'action';
  /** Short and stable for equal deaths: the same signature again is the action's own doing. */
  readonly signature: string;
  constructor(phase: 'start' | 'run', blame: 'engine' | 'action', signature: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'BoxLost';
    this.phase = phase;
    this.blame = blame;
    this.signature = signature;
  }
}

export interface Labels {
  /** The farm that owns the container; a sweeper touches its own farm's only. */
  farm: string;
  /** Incarnation of the worker process. */
  worker: string;
  run?: string;
  /** `group-member`, for people. */
  member?: string;
}

export interface SandboxDriver {
  readonly kind: 'docker' | 'subprocess';
  /** Throws FarmError (exit 3) if the engine does not answer or `image` is not there; says how to get it. Prepares the image once. */
  prepare(image: string): Promise<{ imageId: string; runnerHash: string | null }>;
  /** Whether the engine answers now: tells a lost box from a lost engine. Never throws. */
  answers(): Promise<boolean>;
  /** Opens a box. Throws BoxLost (phase `start`) or the signal's reason. Nothing is left behind on failure. */
  open(limits: SandboxLimits, labels: Labels, signal: AbortSignal): Promise<Box>;
  /** Removes containers of `farm` that are past their absolute expiry or whose worker is not in `alive`. Returns how many. */
  sweep(farm: string, alive: (worker: string) => boolean): Promise<number>;
  close(): Promise<void>;
}
