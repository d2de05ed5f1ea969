// What a farm has left behind: processes that carry its data folder in their environment or work in it, and containers
// with its label.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
const run = promisify(execFile);
const ENGINE_MS = 20_000;
/** Empty as soon as nothing is left; else what is still there after `graceMs`. */
export async function leftovers(data, farmId, graceMs, except) {
    const deadline = performance.now() + graceMs;
    for (;;) {
        const left = [...processesOf(data, except), ...(farmId === null ? [] : await containersOf(farmId))];
        if (left.length === 0 || performance.now() > deadline)
            return left;
        await wait(500);
    }
}
export async function containersOf(farmId) {
    const args = [
        'ps',
        '-a',
        '--filter',
        `label=rollout-farm.farm=${farmId}`,
        '--format',
        '{{.ID}} {{.Status}} {{.Names}}',
    ];
    const { stdout } = await run('docker', args, { timeout: ENGINE_MS });
    return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => `container ${line}`);
}
function processesOf(data, except) {
    return readdirSync('/proc').flatMap((name) => {
        const pid = Number(name);
        if (!Number.isInteger(pid) || pid === process.pid || except.has(pid))
            return [];
        try {
            const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
            const ours = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`FARM_DATA=${data}`) ||
                `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${data}/`);
            // A zombie has no command line and runs nothing any more.
            return ours && command !== '' ? [`process ${pid} ${command.slice(0, 120)}`] : [];
        }
        catch {
            return [];
        }
    });
}
