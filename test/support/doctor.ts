// What a farm's doctor says of one part of its machine.

import type { TestFarm } from './farm.ts';

export interface Finding {
  part: string;
  ok: boolean;
  found: string;
  hint?: string;
}

export async function findingOf(farm: TestFarm, part: string): Promise<{ code: number | null; finding: Finding }> {
  const { code, stdout } = await farm.run('doctor', '--json');
  return { code, finding: (JSON.parse(stdout) as Finding[]).find((f) => f.part === part) as Finding };
}
