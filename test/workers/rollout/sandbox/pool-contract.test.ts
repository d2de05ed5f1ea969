import { localGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createPool } from '../../../../src/workers/rollout/sandbox/pool.ts';
import { createSubprocessDriver } from '../../../../src/workers/rollout/sandbox/subprocess.ts';
import { sandboxContract } from '../../sandbox-contract.ts';

sandboxContract('a pool over subprocesses', () => {
  const driver = createSubprocessDriver();
  return createPool(driver, () => localGate(driver));
});
