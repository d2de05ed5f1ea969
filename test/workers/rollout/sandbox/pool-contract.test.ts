import { localGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createPool } from '../../../../src/workers/rollout/sandbox/pool.ts';
import { createSubprocessDriver } from '../../../../src/workers/rollout/sandbox/subprocess.ts';
import { sandboxContract } from '../../sandbox-contract.ts';
import { gradeContract } from '../../sandbox-grade-contract.ts';

const make = () => {
  const driver = createSubprocessDriver();
  return createPool(driver, () => localGate(driver));
};

sandboxContract('a pool over subprocesses', make);
gradeContract('a pool over subprocesses', make, { apart: 'exit', 'in-process': 'exit' });
