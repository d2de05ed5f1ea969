// What `doctor` says of the Docker engine: which of the sandbox's defences it has, and which it could have.
import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
const infoSchema = z.object({
    ServerVersion: z.string(),
    CgroupVersion: z.string().default('1'),
    Runtimes: z.record(z.string(), z.unknown()),
    DefaultRuntime: z.string().default('runc'),
    SecurityOptions: z.array(z.string()).nullable().default([]),
    DockerRootDir: z.string(),
    MemoryLimit: z.boolean(),
    SwapLimit: z.boolean(),
    CpuCfsQuota: z.boolean(),
    PidsLimit: z.boolean(),
});
/** One line; limits that the engine cannot keep are named in capitals. */
export async function engineReport() {
    const asked = promisify(execFile)('docker', ['info', '--format', '{{json .}}'], { timeout: 10_000 });
    const text = await asked.then(({ stdout }) => stdout).catch(() => null);
    if (text === null)
        return 'Docker answers; the docker command, which could say more, does not';
    return describeEngine(JSON.parse(text), await freeGb(text));
}
export function describeEngine(given, freeGb) {
    const parsed = infoSchema.safeParse(given);
    if (!parsed.success)
        return `Docker answers, in a way that is not understood (${parsed.error.issues[0]?.path.join('.')})`;
    const info = parsed.data;
    const options = (info.SecurityOptions ?? []).map((one) => one.replace(/^name=/, '').split(',')[0]);
    const has = (name) => options.includes(name);
    const limits = { memory: info.MemoryLimit, swap: info.SwapLimit, CPU: info.CpuCfsQuota, processes: info.PidsLimit };
    const missing = Object.entries(limits).flatMap(([name, there]) => (there ? [] : [name]));
    const runtimes = Object.keys(info.Runtimes).filter((name) => !name.startsWith('io.containerd.'));
    return [
        `Docker ${info.ServerVersion}`,
        `cgroup v${info.CgroupVersion}${missing.length > 0 ? `, WITHOUT LIMITS ON ${missing.join(', ')}` : ''}`,
        `runtimes ${runtimes.sort().join(', ')} (default ${info.DefaultRuntime})`,
        runtimes.includes('runsc') ? 'gVisor there: sandbox.runtime: runsc' : 'no gVisor (runsc)',
        has('seccomp') ? 'seccomp' : 'NO SECCOMP: system calls are not filtered',
        `userns-remap ${has('userns') ? 'on' : 'off'}${has('rootless') ? ', rootless' : ''}`,
        `in ${info.DockerRootDir}${freeGb === null ? '' : `, ${freeGb} GB free`}`,
    ].join('; ');
}
/** Null where the engine is not on this machine. */
async function freeGb(text) {
    try {
        const { DockerRootDir } = z.object({ DockerRootDir: z.string() }).parse(JSON.parse(text));
        const { bavail, bsize } = await statfs(DockerRootDir);
        return Math.floor((bavail * bsize) / 1e9);
    }
    catch {
        return null;
    }
}
