// The reference vectors that are kept in the checkout, by name.

import { readVectorFile, type VectorCase } from '../../tools/vectors/vector-file.ts';

export type { VectorCase };

export function readVectors(name: string): VectorCase[] {
  return readVectorFile(new URL(`../fixtures/vectors/${name}.json`, import.meta.url)).cases;
}
