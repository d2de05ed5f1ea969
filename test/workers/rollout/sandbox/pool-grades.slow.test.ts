// The grades of a pool's boxes: those of bare subprocesses are in the fast suite, and there is little between them.

import { localGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createPool } from '../../../../src/workers/rollout/sandbox/pool.ts';
import { createSubprocessDriver } from '../../../../src/workers/rollout/sandbox/subprocess.ts';
import { gradeContract } from '../../sandbox-grade-contract.ts';

const make = () => {
  const driver = createSubprocessDriver();
  return createPool(driver, () => localGate(driver));
};

gradeContract('a pool over subprocesses', make, { apart: 'exit', 'in-process': 'exit' });
