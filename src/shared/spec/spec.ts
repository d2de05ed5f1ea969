// The run spec as resolved: every default filled in, every path absolute, nothing left to interpret.
// `spec-reader` makes it from a file and reports every problem at once; the manifest keeps `document`.

import type { Convention } from '../group.ts';
import type { ValueMap } from '../json/value.ts';
import type { VerifierConfig } from './verifier-config.ts';

/** `fresh`: a box for each episode. `recycled`: boxes that the run's episodes have in turn, reset between them. */
export const ISOLATIONS = ['fresh', 'recycled'] as const;
export type Isolation = (typeof ISOLATIONS)[number];

export interface RunSpec {
  name: string;
  seed: bigint;
  /** 1 to 4096. */
  groupSize: number;
  maxSteps: number;
  groups: {
    close: 'all' | 'at_least';
    atLeast: number | null;
    deadlineS: number;
    refill: number;
    /** Further groups of a task whose answers were all worth the same; 0 for none. */
    refillDegenerate: number;
  };
  sandbox: {
    image: string;
    memoryMb: number;
    cpus: number;
    pids: number;
    tmpfsMb: number;
    network: 'none';
    timeoutS: number;
    outputKb: number;
    exec: boolean;
    runtime: string | null;
    isolation: Isolation;
  };
  /** Absolute folder, or an address that the store understands. */
  store: string;
  advantage: Convention;
  limits: { inFlight: number; verifierCalls: number | null; policyTokens: number | null; pausedS: number };
  /** Present where the spec has a `domain`. */
  verifier: VerifierConfig | null;
  /** What the run is, as one canonical document: the resolved spec with files named by their hash. Its hash decides whether a run id is resumed or refused. */
  document: ValueMap;
}
