import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { sandboxContract } from './sandbox-contract.ts';
import { gradeContract } from './sandbox-grade-contract.ts';

sandboxContract('docker', () => createDockerDriver({ dockerHost: null }));
gradeContract('docker', () => createDockerDriver({ dockerHost: null }), { apart: 'apart', 'in-process': 'in-process' });
