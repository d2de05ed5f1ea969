// Which runner a file's cases have, by the name that the file gives itself; and the files that nothing runs, with why.

import { runOpenRlhf, runTrl, runVerl } from './adapters.ts';
import { runBatch } from './at-batch.ts';
import { batchPathRunner } from './at-batchpath.ts';
import { breakerRunner } from './at-breaker.ts';
import { runCacheKey } from './at-cache-keys.ts';
import { configRunner } from './at-config.ts';
import { runParser } from './at-parsers.ts';
import { runReport } from './at-reports.ts';
import { runReward } from './at-rewards.ts';
import { runExport } from './cr-export.ts';
import { fileRunner } from './cr-files.ts';
import { runMaterialize, runRandom, runRegistry } from './cr-small.ts';
import { trajectoryRunner } from './cr-trajectories.ts';
import { notRun, type Runner } from './verdict.ts';

const RUNNERS: Record<string, () => Runner> = {
  'at-parsers': () => ({ run: runParser }),
  'at-reports': () => ({ run: runReport }),
  'at-rewards': () => ({ run: runReward }),
  'at-cache-keys': () => ({ run: runCacheKey }),
  'at-config': configRunner,
  'at-batch': () => ({ run: runBatch }),
  'at-batchpath': batchPathRunner,
  'at-breaker': breakerRunner,
  'at-openrlhf': () => ({ run: runOpenRlhf }),
  'at-verl': () => ({ run: runVerl }),
  'at-trl': () => ({ run: runTrl }),
  'cr-trajectories': trajectoryRunner,
  'cr-formats': fileRunner,
  'cr-tamper': fileRunner,
  'cr-export': () => ({ run: runExport }),
  'cr-random': () => ({ run: runRandom }),
  'cr-materialize': () => ({ run: runMaterialize }),
  'cr-registry': () => ({ run: runRegistry }),
};

/** What the product does not have, or has in a shape of its own. */
const NOT_RUN: Record<string, string> = {
  'at-alignment': 'alignment measures are not built',
  'at-evaluation': 'evaluation is not built',
  'at-misc': 'prompts, run reports and model backends are not built',
  'at-drift': 'drift measures are not built',
  'at-faithfulness': 'the rich scorer is not built',
  'at-reasoning-sweep': 'the reasoning sweep is not built',
  'cr-sandbox': "the library's own sandbox; ours is behind the environments, whose episodes are run",
  'cr-rubric': 'rubrics are code of the library; a task is data here',
  'cr-reward-fns': "factories of the library's own environments; an environment is named in the request here",
  'python-versions': 'a list of answers that change under another Python: no cases of its own',
};

/** Undefined: a file that nobody knows. */
export function runnerFor(name: string): Runner | undefined {
  const make = RUNNERS[name];
  if (make) return make();
  const reason = NOT_RUN[name];
  return reason === undefined ? undefined : { run: () => notRun(reason) };
}
