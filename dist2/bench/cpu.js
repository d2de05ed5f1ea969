// Processor time over a stretch: of this process and the children that it has waited for, of all containers, and of the
// whole machine, in which the engine's own work shows. The last two mean something on a quiet machine only.
import { readFileSync } from 'node:fs';
/** Linux counts these files in hundredths of a second. */
const TICK_MS = 10;
const CONTAINERS = ['/sys/fs/cgroup/cpuacct/docker/cpuacct.usage', '/sys/fs/cgroup/cpu,cpuacct/docker/cpuacct.usage'];
const CONTAINERS_V2 = ['/sys/fs/cgroup/docker/cpu.stat'];
export function cpuNow() {
    return { workerMs: ownMs(), containersMs: containersMs(), machineMs: machineMs() };
}
export function cpuSince(before) {
    const now = cpuNow();
    const less = (a, b) => (a === null || b === null ? null : a - b);
    return {
        workerMs: now.workerMs - before.workerMs,
        containersMs: less(now.containersMs, before.containersMs),
        machineMs: less(now.machineMs, before.machineMs),
    };
}
function ownMs() {
    const { user, system } = process.cpuUsage();
    const stat = text('/proc/self/stat');
    // after the name, which may hold anything: cutime and cstime are the 14th and the 15th from there
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
    const children = Number(fields[13] ?? 0) + Number(fields[14] ?? 0);
    return (user + system) / 1000 + children * TICK_MS;
}
function containersMs() {
    for (const file of CONTAINERS) {
        const found = text(file);
        if (found !== null)
            return Number(found) / 1e6;
    }
    for (const file of CONTAINERS_V2) {
        const found = /^usage_usec (\d+)$/m.exec(text(file) ?? '');
        if (found)
            return Number(found[1]) / 1000;
    }
    return null;
}
function machineMs() {
    const line = /^cpu +(.*)$/m.exec(text('/proc/stat') ?? '')?.[1];
    if (line === undefined)
        return null;
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(' ').map(Number);
    return (user + nice + system + irq + softirq) * TICK_MS;
}
function text(file) {
    try {
        return readFileSync(file, 'utf8');
    }
    catch {
        return null;
    }
}
