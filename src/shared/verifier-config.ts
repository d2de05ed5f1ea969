// The verifier's part of a spec: ambertrace-rlvr's sections `domain`, `reward` and `verifier`, with that library's
// names, defaults and meaning; `training`, `dataset` and `eval` are accepted and kept for trainers.

import type { Problem } from './environment.ts';
import type { ValueMap } from './value.ts';

/** Component weights; the two penalties are subtracted. */
export interface RewardWeights {
  format: number;
  certified: number;
  correctness: number;
  graded: number;
  rejected_penalty: number;
  unsupported_penalty: number;
  consistency: number;
}

export type ParserConfig =
  | { kind: 'json_block'; answerKey: string; factsKey: string; relationsKey: string | null; queryTemplate: string }
  | { kind: 'regex_block'; answerPattern: string; factPattern: string; queryTemplate: string };

export interface VerifierConfig {
  platformId: bigint;
  /** Without a trailing slash; `AMBERTRACE_BASE_URL` stands in where the file has none. */
  baseUrl: string;
  parser: ParserConfig;
  weights: RewardWeights;
  clip: readonly [number, number];
  floor: number;
  batchSize: number;
  maxConcurrency: number;
  cache: boolean;
}

/** Resolves the six sections of `root` (other keys are not looked at). Null where there is no `domain`. Paths in problems are dotted from the root. */
export declare function resolveVerifier(root: ValueMap, baseUrl: string | null): { config: VerifierConfig | null; problems: Problem[] };
