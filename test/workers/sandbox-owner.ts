// A worker's stand-in, started as a process of its own by sandbox-lifecycle.slow.test.ts: opens a box, says so, and waits to be killed.

import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { LIMITS, run } from './sandbox-contract.ts';

const farm = process.argv.at(-1) ?? '';
const driver = createDockerDriver({ dockerHost: null });
const box = await driver.open(LIMITS, { farm, worker: 'owner' }, new AbortController().signal);
process.stdout.write('open\n');
await run(box, ['sleep', '600'], { timeoutMs: 600_000 });
