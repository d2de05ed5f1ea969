import { sandboxContract } from './sandbox-contract.ts';
import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';

sandboxContract('subprocess', createSubprocessDriver);
