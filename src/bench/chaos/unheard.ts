// What must be seen of processes that are not heard of any more, and held members when they went: `top` names the worker
// while its leases last, and whoever drives the run logs that they ran out.

import { heldBy } from './held.ts';
import type { Scene } from './scene.ts';
import type { Visible } from './sight.ts';

const WITHIN_MS = 25_000;

/** Asked when they have gone, with the numbers that they had. Null if they held nothing: then nobody waits for them. */
export async function unheard({ ledger, run }: Scene, gone: readonly (number | null)[]): Promise<Visible | null> {
  const pids = gone.map(String);
  const held = await heldBy(ledger.admin, run, (worker) => pids.includes(worker.split('-')[1] ?? '')).catch(() => []);
  if (held.length === 0) return null;
  const worker = `\\w+-(${pids.join('|')})-[\\w-]+`;
  return {
    top: new RegExp(`worker ${worker} has not been heard of for`),
    log: new RegExp(`"worker":"${worker}".*was not heard of until its leases ran out`),
    withinMs: WITHIN_MS,
  };
}
