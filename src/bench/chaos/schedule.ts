// A schedule of faults: a pure function of its seed and of how many there are to be. It says what befalls whom, when the
// run has come how far, and for how long; what a machine cannot do is left out when it is played, never when it is drawn.

import { Draws } from './draws.ts';

/** SIGKILL of something. */
const KILLS = ['killed', 'driver-killed', 'redis-killed', 'everything-killed'] as const;
const TROUBLES = [
  'stopped',
  'role-gone',
  'cut-off',
  'rack-cut',
  'power-lost',
  'clock-back',
  'clock-ahead',
  'redis-stopped',
  'redis-slow',
  'redis-full',
  'redis-forgets',
  'engine-hung',
  'engine-gone',
  'store-full',
  'store-readonly',
  'store-frozen',
  'store-slow',
  'verifier-down',
  'verifier-rate-limited',
  'verifier-garbage',
] as const;
const FOLDER_TROUBLES: ReadonlySet<string> = new Set(TROUBLES.filter((kind) => kind.startsWith('store-')));
/** In place of those of the disk, where the store is an S3 server. */
const S3_TROUBLES = ['s3-500', 's3-503', 's3-slow', 's3-silent', 's3-gone', 's3-cut', 's3-deaf', 's3-lies'] as const;

export type FaultKind = (typeof KILLS)[number] | (typeof TROUBLES)[number] | (typeof S3_TROUBLES)[number];
export const FAULT_KINDS: readonly FaultKind[] = [...KILLS, ...TROUBLES, ...S3_TROUBLES];
export const STORES = ['folder', 's3'] as const;
export type StoreKind = (typeof STORES)[number];

export interface ChaosEvent {
  kind: FaultKind;
  /** It begins when this share of the members is accepted. */
  at: number;
  holdMs: number;
  /** Whom it befalls, of those whom it can befall: a draw, taken modulo their number. */
  target: number;
  /** The next one may begin while this one holds. */
  overlaps: boolean;
}

export interface ScheduleSize {
  kills: number;
  /** Faults that kill nobody; each kind comes once before any comes twice. */
  troubles: number;
  /** Of these kinds alone; all where it is left out. */
  only?: readonly FaultKind[];
  /** What the store is; a folder where it is left out. */
  store?: StoreKind;
}

/** Those that kill nobody and can befall such a farm. */
export function troublesOf(store: StoreKind): readonly FaultKind[] {
  return store === 'folder' ? TROUBLES : [...TROUBLES.filter((kind) => !FOLDER_TROUBLES.has(kind)), ...S3_TROUBLES];
}

/** Begins when nothing else holds: a disk that somebody else stopped cannot lose its power. */
export const ALONE: FaultKind = 'power-lost';
const FIRST = 0.02;
/** No fault begins after this share. */
export const LAST = 0.88;
/** Longer than the queue's lock (8 s) and than a member's lease. */
const BEYOND_LOCK_MS = [9_000, 11_000] as const;
/** One kill in so many is long: others have to take over. */
const LONG_ONE_IN = 6;

export function scheduleOf(seed: bigint, size: ScheduleSize): ChaosEvent[] {
  const draws = new Draws(seed);
  const kinds = draws.shuffled([...killsOf(draws, size.kills), ...drawTroubles(draws, size)]);
  return kinds.map((kind, i) => ({
    kind,
    at: FIRST + ((LAST - FIRST) * (i + draws.below(1_000) / 1_000)) / kinds.length,
    holdMs: holdOf(draws, kind),
    target: draws.below(2 ** 31),
    overlaps: draws.below(4) === 0 && kind !== ALONE,
  }));
}

function killsOf(draws: Draws, count: number): FaultKind[] {
  return Array.from({ length: count }, () => {
    const draw = draws.below(10);
    if (draw < 6) return 'killed';
    if (draw < 8) return 'redis-killed';
    return draw === 8 ? 'driver-killed' : 'everything-killed';
  });
}

function drawTroubles(draws: Draws, { troubles, only, store = 'folder' }: ScheduleSize): FaultKind[] {
  const choice = troublesOf(store).filter((kind) => only === undefined || only.includes(kind));
  const kinds: FaultKind[] = [];
  while (kinds.length < troubles && choice.length > 0) kinds.push(...draws.shuffled(choice));
  return kinds.slice(0, troubles);
}

function holdOf(draws: Draws, kind: FaultKind): number {
  switch (kind) {
    case 'killed':
    case 'driver-killed':
      return draws.below(LONG_ONE_IN) === 0 ? draws.between(...BEYOND_LOCK_MS) : draws.between(200, 1_500);
    case 'redis-killed':
    case 'everything-killed':
      return draws.between(200, 2_500);
    case 'stopped':
    case 'cut-off':
    case 'rack-cut':
    case 'redis-stopped':
      return draws.between(...BEYOND_LOCK_MS);
    default:
      return draws.between(3_000, 7_000);
  }
}
