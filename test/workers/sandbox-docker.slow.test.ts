import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { sandboxContract } from './sandbox-contract.ts';

sandboxContract('docker', () => createDockerDriver({ dockerHost: null }));
