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
  /** Whether files that were written may be executed. */
  exec: boolean;
  /** The engine's runtime by its name there (`runsc` is gVisor); null: its default. */
  runtime: string | null;
  /** Episodes that name the same may have one box in turn, reset between them; absent or null: a box of the episode's own. */
  recycle?: string | null;
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
  exec: true,
  runtime: null,
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
  /** A folder of the box was full when it ended, or it was killed for a file that grew too large. */
  diskFull: boolean;
  /** Wall time of the command itself, ms. */
  wallMs: number;
}

/** A Python check whose grade rests on more than an exit status (docs/grades.md). */
export interface Check {
  /** `apart`: under a user of its own, the judged code in another process under another user. `in-process`: with a
   *  proof that the check came to its end, in the judged code's own process. */
  kind: GradeLevel & ('apart' | 'in-process');
  /** A name on the image's PATH or an absolute path, never where untrusted code can write. */
  interpreter: string;
  /** The check's file by its normalised path, else `module` is what runs as `-m` would run it. */
  file: string | null;
  module: string | null;
  /** `sys.argv` after the interpreter: the file as the task names it (or the module), and its arguments. */
  argv: string[];
  /** The task's files as the agent left them, by normalised path. */
  files: ReadonlyMap<string, Uint8Array>;
  /** Files of the check: they win over `files`, and what is Python among them is never where the judged code can read it (apart). */
  hidden: ReadonlyMap<string, Uint8Array>;
  /** Paths of the task's own files. */
  own: readonly string[];
  task: TaskFacts;
  /** The interpreter loads common modules ahead, and stays for the next grade in the same box. */
  warm: boolean;
  timeoutMs: number;
  outputBytes: number;
  signal?: AbortSignal;
}

/** What a task says of itself before any edit: never the candidate's word. */
export interface TaskFacts {
  /** Names that its Python files define as functions; never classes that a check makes objects of. */
  functions: readonly string[];
  /** Names that they define at all: what `from module import *` may put in the place of a name of the check's. */
  names: readonly string[];
  /** Data among the hidden files, withheld from the judged code (apart) until the check names it to that. */
  withheld: readonly string[];
}

/** What a grade can prove, the weakest last. */
export const GRADE_LEVELS = ['apart', 'in-process', 'exit'] as const;
export type GradeLevel = (typeof GRADE_LEVELS)[number];

/** `launch` here means that the interpreter did not start the check: never the judged code's doing. */
export interface GradeResult extends CommandResult {
  status: 'graded';
  /** How it was judged: lower than asked for where a driver cannot do more. */
  level: GradeLevel;
  passed: boolean;
  /** Why not, in the harness's words, for people; nothing that is recorded depends on it. */
  why: string | null;
  /** The signal that ended the candidate of a grade made apart before the judge was done, else null. */
  candidateSignal: number | null;
}

export type Grade =
  | GradeResult
  /** A file could not be laid; `hidden`: one of the check's own. */
  | { status: 'not_laid'; hidden: boolean; path: string; reason: 'escape' | 'disk' | 'other'; message: string };

/** Files of the work folder as bytes; `truncated` where a cap on bytes, entries or depth cut the listing. */
export interface Listing {
  files: Map<string, Buffer>;
  truncated: boolean;
}

export interface Box {
  /** Image id, for the certificate. */
  readonly imageId: string;
  readonly runnerHash: string | null;
  /** `recycled`: its episode shares it in turn with others of its run. */
  readonly isolation: 'fresh' | 'recycled' | 'subprocess';
  /** False once it is known to be gone or has not been heard of for a while. */
  readonly well: boolean;
  /** Milliseconds from asking to ready: left out of a member's `seconds`. */
  readonly startMs: number;
  /** Writes files (relative path → content) into the work folder, making parents. A path that leaves it is refused: { escaped: path }. Links are not followed. */
  write(
    files: ReadonlyMap<string, Uint8Array>,
  ): Promise<{ ok: true } | { ok: false; path: string; reason: 'escape' | 'disk' | 'other'; message: string }>;
  /** Runs one command in the work folder. When it ends, by itself or not, everything it left running is killed before this returns. */
  run(command: Command): Promise<CommandResult>;
  /** Empties the box, lays the check's files and grades by them: everything that ran before is dead by then, everything
   *  that the grade started is dead before this returns. `recycled`: there may be others in this box, and the interpreter
   *  that serves grades is kept for them, as it started. */
  grade(check: Check, recycled?: boolean): Promise<Grade>;
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
  /** What runs in it; default `agent`. A box of one use never comes to another. */
  use?: 'agent' | 'judge';
}

export interface EngineFacts {
  /** The engine's own, the same for everybody who uses it. */
  id: string;
  memoryMb: number;
  cpus: number;
  /** As images are named for: amd64, arm64, … */
  architecture: string;
  runtimes: string[];
}

export interface SandboxDriver {
  readonly kind: 'docker' | 'subprocess';
  /** Throws FarmError (exit 3) if the engine does not answer, has no such runtime, or `image` is not there; says how to get it. Prepares the image once. */
  prepare(image: string, runtime?: string | null): Promise<{ imageId: string; runnerHash: string | null }>;
  /** Whether the engine answers now: tells a lost box from a lost engine. Never throws. */
  answers(): Promise<boolean>;
  /** Throws if it does not answer. */
  engine(): Promise<EngineFacts>;
  /** Opens a box. Throws BoxLost (phase `start`) or the signal's reason. Nothing is left behind on failure. */
  open(limits: SandboxLimits, labels: Labels, signal: AbortSignal): Promise<Box>;
  /** Removes containers of `farm` that are past their absolute expiry or whose worker is not in `alive`. Returns how many. */
  sweep(farm: string, alive: (worker: string) => boolean): Promise<number>;
  close(): Promise<void>;
}
