import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';
import { sandboxContract } from './sandbox-contract.ts';
import { gradeContract } from './sandbox-grade-contract.ts';

sandboxContract('subprocess', createSubprocessDriver);
// no other user is there to judge, and a grade says so
gradeContract('subprocess', createSubprocessDriver, { apart: 'exit', 'in-process': 'exit' });
