import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';
import { sandboxContract } from './sandbox-contract.ts';

sandboxContract('subprocess', createSubprocessDriver);
