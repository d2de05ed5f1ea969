// The Python library beside us, on the same stub: its reward path at its defaults, at 64 threads, and over its batch path.
// It lives in a virtual environment of its own, made once from the package registry.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
const PACKAGES = ['ambertrace-rlvr==0.2.0', 'ambertraceai==2.10.0'];
// Reads {"threads", "batch", "count"} a line, answers with the milliseconds of one round.
const SCRIPT = `
import json, sys, time
from ambertrace_rlvr.domain import VerifiableDomain
from ambertrace_rlvr.parsers import JSONBlockParser
from ambertrace_rlvr.verifier import AmberVerifier
for line in sys.stdin:
    o = json.loads(line)
    v = AmberVerifier(domain=VerifiableDomain(1, JSONBlockParser(), api_key="at_bench_0123456789", base_url=sys.argv[1]), max_concurrency=o["threads"])
    if not o["batch"]:
        v._supports_batch = lambda: False
    f = v.as_reward_function()
    texts = ['<decision>{"classification": "permit", "facts": {"id": %d}}</decision>' % (o["from"] + i) for i in range(o["count"])]
    began = time.perf_counter()
    f([""] * len(texts), texts, [{}] * len(texts))
    print(round((time.perf_counter() - began) * 1000, 3), flush=True)
`;
/** Null, with the reason, where it cannot be had. */
export async function startPython(baseUrl) {
    const folder = path.join(homedir(), '.cache', 'rollout-farm', 'bench-python');
    const python = path.join(folder, 'bin', 'python');
    if (!existsSync(path.join(folder, 'ready'))) {
        for (const [command, args] of [
            ['python3', ['-m', 'venv', folder]],
            [python, ['-m', 'pip', 'install', '--quiet', ...PACKAGES]],
            ['touch', [path.join(folder, 'ready')]],
        ]) {
            const code = await run(command, args);
            if (code !== 0)
                return { missing: `${command} ${args.join(' ')} ended with ${code}` };
        }
    }
    const child = spawn(python, ['-c', SCRIPT, baseUrl], { stdio: ['pipe', 'pipe', 'inherit'] });
    let text = '';
    const waiting = [];
    child.stdout.on('data', (chunk) => {
        text += chunk.toString();
        for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
            waiting.shift()?.(text.slice(0, end));
            text = text.slice(end + 1);
        }
    });
    return {
        round: (options) => new Promise((resolve) => {
            waiting.push((line) => resolve(Number(line)));
            child.stdin.write(`${JSON.stringify(options)}\n`);
        }),
        close: () => child.stdin.end(),
    };
}
async function run(command, args) {
    const child = spawn(command, args, { stdio: ['ignore', 2, 2] });
    child.once('error', () => { });
    const [code] = (await once(child, 'close'));
    return code ?? 1;
}
