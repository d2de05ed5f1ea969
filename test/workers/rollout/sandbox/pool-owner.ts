// A worker's stand-in, started as a process of its own by pool-docker.slow.test.ts: takes boxes until some stand ready, says so,
// and waits to be killed.

import { createDockerDriver } from '../../../../src/workers/rollout/sandbox/docker.ts';
import { localGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createPool } from '../../../../src/workers/rollout/sandbox/pool.ts';
import { containersOf } from '../../../support/outside.ts';
import { until } from '../../../support/until.ts';
import { LIMITS, run } from '../../sandbox-contract.ts';

const farm = process.argv.at(-1) ?? '';
const driver = createDockerDriver({ dockerHost: null });
const pool = createPool(driver, () => localGate(driver));
const open = () => pool.open(LIMITS, { farm, worker: 'owner' }, new AbortController().signal);
for (let turn = 0; turn < 6; turn += 1) await (await open()).close();
const box = await open();
await until('some stand ready', async () => (await containersOf(farm)).length > 1);
process.stdout.write('open\n');
await run(box, ['sleep', '600'], { timeoutMs: 600_000 });
