import { test } from 'vitest';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
const limits = { image: 'rollout-farm/python', memoryMb: 256, cpus: 1, pids: 128, tmpfsMb: 64, network: 'none' as const, timeoutMs: 10000, outputBytes: 262144 };
const p50 = (a: number[]) => a.sort((x, y) => x - y)[Math.floor(a.length / 2)];
test('bench', async () => {
  const driver = createDockerDriver({ dockerHost: null });
  console.log(await driver.prepare('rollout-farm/python'));
  const opens: number[] = [], runs: number[] = [], closes: number[] = [], py: number[]=[];
  for (let i = 0; i < 8; i++) {
    let t = performance.now();
    const box = await driver.open(limits, { farm: 'scratch', worker: 'w' }, new AbortController().signal);
    opens.push(performance.now() - t);
    for (let j = 0; j < 10; j++) { t = performance.now(); const r = await box.run({ argv: ['true'], timeoutMs: 5000, outputBytes: 1000 }); runs.push(performance.now() - t); if (r.cause !== 'exit') console.log(r); }
    if (i === 0) {
      const r = await box.run({ argv: ['sh', '-c', 'id; env; pwd; ls -la / /work; cat /proc/self/status | grep -E "Cap|NoNew|Seccomp"; cat /proc/self/oom_score_adj /proc/1/oom_score_adj; mount | grep tmpfs; ulimit -a; ls -la /proc/self/fd; echo hi >&2; exit 3'], timeoutMs: 5000, outputBytes: 100000 });
      console.log(r, r.stdout.toString(), r.stderr.toString());
    }
    t = performance.now(); await box.run({ argv: ['python3', '-c', 'print(1)'], timeoutMs: 5000, outputBytes: 1000 }); py.push(performance.now()-t);
    t = performance.now();
    await box.close();
    closes.push(performance.now() - t);
  }
  console.log('open', p50(opens), 'run true', p50(runs), 'python', p50(py), 'close', p50(closes));
  for (const wide of [1, 2, 4]) {
    const d = createDockerDriver({ dockerHost: null, startsAtOnce: wide });
    const t = performance.now();
    const lat: number[] = [];
    await Promise.all(Array.from({ length: wide }, async () => { for (let i = 0; i < 12 / wide; i++) { const a = performance.now(); const b = await d.open(limits, { farm: 'scratch', worker: 'w' }, new AbortController().signal); lat.push(performance.now() - a); await b.close(); } }));
    console.log('wide', wide, 'per s', 12000 / (performance.now() - t), 'p50', p50(lat));
    await d.close();
  }
  await driver.close();
});
