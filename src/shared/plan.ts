// The plan: one document a group, kept in the store in packs, found through one index object. A document holds
// what the group's episodes need; what is large in it is a claim. A plan is a pure function of the spec's
// content, so planning the same spec again gives the same bytes and the same claims.

import { z } from 'zod';
import { type Claim, claimSchema } from './claim.ts';
import type { Value } from './value.ts';

/** Values above this many bytes of JSON become objects of their own; below, they travel in the document. */
export const INLINE_BYTES = 16 * 1024;

/** A value in the document, or a claim on its JSON text (UTF-8, `dumpJson`). */
export type Held = { inline: Value } | { claim: Claim };

/** How one member acts: a list of actions, or a completion that the environment's parser turns into one. */
export type Play = { kind: 'actions'; actions: Held } | { kind: 'completion'; completion: Held };

export interface PlanDocument {
  task_id: string;
  env: string;
  seed: bigint;
  config: Held;
  prompt: Held | null;
  metadata: Held | null;
  /** The member's text goes to the verifier: always for `text`, else if the task says so. */
  verify: boolean;
  /** One a member, in order; for a scripted policy a single play that all members share. */
  plays: Play[];
}

/** Where a group's document lies. */
export const placeSchema = z.strictObject({
  pack: z.string().regex(/^[0-9a-f]{64}$/),
  offset: z.int().nonnegative(),
  bytes: z.int().positive(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Place = z.infer<typeof placeSchema>;

export const planRefSchema = z.strictObject({
  /** The index object: one `Place` a line, in group order. */
  index: claimSchema,
  groups: z.int().positive(),
  groupSize: z.int().positive(),
});
export type PlanRef = z.infer<typeof planRefSchema>;
