// The Docker engine as the sandbox needs it: the only file that knows dockerode. Every call has a deadline; one that
// overruns it is an EngineError, and what it may still bring about is the caller's to remove (containers have names of ours).
import Docker from 'dockerode';
import { missingError } from '../../../shared/errors.js';
import { seccompProfile } from './seccomp.js';
const SOCKET = '/var/run/docker.sock';
/** Shared memory of System V belongs to no process, so the kernel could free it by killing only the runner: it has to be little.
 *  Closed connections are forgotten at once: they would outlive their processes, and a reset, by a minute. */
const KERNEL_SETTINGS = {
    'kernel.shmmax': String(16 * 1024 * 1024),
    'kernel.shmall': String((16 * 1024 * 1024) / 4096),
    'kernel.shmmni': '64',
    'kernel.msgmni': '16',
    'kernel.sem': '250 3200 32 32',
    'net.ipv4.tcp_max_tw_buckets': '0',
};
/** What `uname -m` says, as images name it. */
const IMAGE_ARCHITECTURES = { x86_64: 'amd64', aarch64: 'arm64' };
/** A box's share is dealt out in short turns: within a turn its threads may have every processor, and whoever is beside it waits so long. */
const TURN_US = 20_000;
/** No engine deals out less than this in a turn. */
const LEAST_US = 1_000;
/** At most `cpus`, and the weight of so many against others. */
function cpuShare(cpus) {
    const period = Math.min(1_000_000, Math.max(TURN_US, Math.ceil(LEAST_US / cpus)));
    return {
        CpuPeriod: period,
        CpuQuota: Math.max(LEAST_US, Math.round(period * cpus)),
        CpuShares: Math.max(2, Math.round(1024 * cpus)),
    };
}
export class EngineError extends Error {
    /** HTTP status of the engine's answer; 0 where there was none. */
    status;
    step;
    constructor(step, status, message) {
        super(`${step}: ${message}`);
        this.name = 'EngineError';
        this.step = step;
        this.status = status;
    }
}
export class DockerEngine {
    #docker;
    #seccomp = seccompProfile();
    constructor(dockerHost) {
        this.#docker = connect(dockerHost);
    }
    async ping(withinMs) {
        await bounded('ping', withinMs, this.#docker.ping());
    }
    /** It refuses a box that asks for more CPUs than it has. */
    async facts() {
        const info = (await bounded('info', 15_000, this.#docker.info()));
        const machine = info.Architecture ?? '';
        return {
            id: info.ID ?? 'unnamed',
            cpus: info.NCPU ?? 1,
            memoryMb: Math.floor((info.MemTotal ?? 1024 ** 3) / 1024 ** 2),
            architecture: IMAGE_ARCHITECTURES[machine] ?? machine,
            runtimes: Object.keys(info.Runtimes ?? {}),
        };
    }
    /** Null: there is no such image. */
    async image(name) {
        try {
            const found = await bounded('inspect image', 15_000, this.#docker.getImage(name).inspect());
            return {
                id: found.Id,
                os: found.Os,
                architecture: found.Architecture,
                env: found.Config.Env ?? [],
                volumes: Object.keys(found.Config.Volumes ?? {}),
            };
        }
        catch (error) {
            if (error instanceof EngineError && error.status === 404)
                return null;
            throw error;
        }
    }
    /** Creates; the container is not started. */
    async create(plan) {
        await bounded('create', 30_000, this.#docker.createContainer({
            name: plan.name,
            Image: plan.image,
            Labels: plan.labels,
            Hostname: 'box',
            User: '0:0',
            WorkingDir: '/',
            Tty: false,
            OpenStdin: true,
            StdinOnce: true,
            AttachStdin: true,
            AttachStdout: true,
            AttachStderr: true,
            NetworkDisabled: true,
            HostConfig: {
                AutoRemove: true,
                CapDrop: ['ALL'],
                CapAdd: ['SETUID', 'SETGID'],
                SecurityOpt: ['no-new-privileges', `seccomp=${this.#seccomp}`],
                ...(plan.runtime === null ? {} : { Runtime: plan.runtime }),
                Privileged: false,
                ReadonlyRootfs: true,
                NetworkMode: 'none',
                IpcMode: 'private',
                Init: false,
                LogConfig: { Type: 'none', Config: {} },
                Memory: plan.memoryBytes,
                MemorySwap: plan.memoryBytes,
                ...cpuShare(plan.cpus),
                PidsLimit: plan.pids,
                Tmpfs: plan.tmpfs,
                Sysctls: KERNEL_SETTINGS,
                Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
            },
        }));
    }
    /** Before the start, so that not a byte is lost. */
    async attach(name) {
        const attached = this.#docker
            .getContainer(name)
            .attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
        return (await bounded('attach', 15_000, attached, (late) => late.destroy()));
    }
    async start(name) {
        await bounded('start', 30_000, this.#docker.getContainer(name).start());
    }
    /** Resolves when the container is removed (to be called before its start); false if that cannot be learnt. */
    removed(name) {
        return this.#docker
            .getContainer(name)
            .wait({ condition: 'removed' })
            .then(() => true, () => false);
    }
    /** Removes, running or not; true once it is not there any more. */
    async remove(name, withinMs = 20_000) {
        try {
            await bounded('remove', withinMs, this.#docker.getContainer(name).remove({ force: true, v: true }));
            return true;
        }
        catch (error) {
            if (!(error instanceof EngineError))
                throw error;
            if (error.status === 404)
                return true;
            // 409: its removal is under way already
            return error.status === 409 ? !(await this.#exists(name)) : false;
        }
    }
    async #exists(name) {
        for (let turn = 0; turn < 50; turn += 1) {
            try {
                await bounded('inspect', 5_000, this.#docker.getContainer(name).inspect());
            }
            catch (error) {
                if (error instanceof EngineError && error.status === 404)
                    return false;
            }
            await new Promise((resolve) => setTimeout(resolve, 100));
        }
        return true;
    }
    /** What the engine saw of the container's end; it keeps its last 256 events also of removed ones. Memory that was short before
     *  `sinceMs` is another episode's. */
    async death(name, sinceMs) {
        const untilMs = Date.now();
        const stream = await bounded('events', 5_000, this.#docker.getEvents({
            since: Math.floor(sinceMs / 1000),
            until: Math.ceil(untilMs / 1000),
            filters: JSON.stringify({ container: [name], event: ['die', 'oom', 'kill'] }),
        }));
        const text = await bounded('events', 5_000, collect(stream));
        const death = { exitCode: null, oom: false, killed: false };
        for (const line of text.split('\n')) {
            if (line.trim() === '')
                continue;
            const event = JSON.parse(line);
            if (event.Action === 'oom' && (event.timeNano ?? Number.POSITIVE_INFINITY) / 1e6 >= sinceMs)
                death.oom = true;
            if (event.Action === 'kill')
                death.killed = true;
            if (event.Action === 'die')
                death.exitCode = Number(event.Actor?.Attributes?.exitCode ?? Number.NaN);
        }
        return death;
    }
    async labelled(label) {
        const found = await bounded('list', 20_000, this.#docker.listContainers({ all: true, filters: { label: [label] } }));
        return found.map((one) => ({ id: one.Id, labels: one.Labels }));
    }
    /** A new image: `base` with one file of `source` copied in and a start of its own. Both stay as they are. */
    async graft(plan) {
        const made = [];
        const container = async (image) => {
            const one = await bounded('create', 30_000, this.#docker.createContainer({ Image: image, Cmd: ['/'] }));
            made.push(one);
            return one;
        };
        try {
            const [from, to] = [await container(plan.source), await container(plan.base)];
            for (const folder of plan.folders)
                if (!(await isFolderOrNothing(to, folder)))
                    throw new EngineError('look', 0, `its ${folder} is no folder`);
            const archive = await bounded('copy out', 15_000, from.getArchive({ path: plan.path }));
            await bounded('copy in', 30_000, to.putArchive(archive, { path: '/' }));
            const changes = [...plan.changes, `LABEL ${GRAFT_LABEL}=${plan.tag}`];
            // named only when it is whole: what has no name yet must not look like what has lost it
            const { Id } = (await bounded('commit', 120_000, to.commit({ changes, pause: false })));
            const [repo = '', tag = ''] = plan.tag.split(':');
            if ((await this.image(plan.tag)) === null)
                await bounded('tag', 15_000, this.#docker.getImage(Id).tag({ repo, tag }));
            if ((await this.image(plan.tag))?.id !== Id)
                await this.#dropImage(Id);
            await this.#dropUntagged(plan.tag);
        }
        finally {
            for (const one of made)
                await this.remove(one.id);
        }
    }
    /** Two processes may graft the same at once: the tag is the later one's, the other image is nobody's after a while. */
    async #dropUntagged(tag) {
        const filters = { label: [`${GRAFT_LABEL}=${tag}`], dangling: ['true'] };
        for (const one of await bounded('list images', 15_000, this.#docker.listImages({ filters })))
            if (one.Created * 1000 < Date.now() - UNNAMED_MS)
                await this.#dropImage(one.Id);
    }
    async #dropImage(id) {
        await bounded('remove image', 15_000, this.#docker.getImage(id).remove()).catch(() => { });
    }
}
/** No graft takes longer from its commit to its name. */
const UNNAMED_MS = 300_000;
const GRAFT_LABEL = 'rollout-farm.box';
function connect(dockerHost) {
    // All of these are named, or the library would take them from the environment.
    const nothing = { host: undefined, port: undefined, protocol: 'http', ca: undefined, cert: undefined };
    const options = (over) => new Docker({ ...nothing, ...over });
    if (dockerHost === null)
        return options({ socketPath: SOCKET });
    if (dockerHost.startsWith('unix://'))
        return options({ socketPath: dockerHost.slice(7) || SOCKET });
    try {
        const url = new URL(dockerHost.includes('//') ? dockerHost : `tcp://${dockerHost}`);
        if (['tcp:', 'http:', 'https:'].includes(url.protocol))
            return options({
                socketPath: undefined,
                host: url.hostname,
                port: Number(url.port || (url.protocol === 'https:' ? 2376 : 2375)),
                protocol: url.protocol === 'https:' ? 'https' : 'http',
            });
    }
    catch {
        // told below
    }
    throw missingError('docker_unreachable', `DOCKER_HOST "${dockerHost}" is no address that the Docker client here can use`, 'use unix:///path/to/docker.sock or tcp://host:port');
}
/** Links count as what they are. */
async function isFolderOrNothing(container, path) {
    const answer = await bounded('look', 15_000, container.infoArchive({ path })).catch((error) => {
        if (error.status === 404)
            return null;
        throw error;
    });
    if (answer === null)
        return true;
    const header = answer.headers['x-docker-container-path-stat'];
    const { mode } = JSON.parse(Buffer.from(String(header), 'base64').toString());
    return mode >= GO_FOLDER;
}
/** The highest of Go's 32 mode bits. */
const GO_FOLDER = 2 ** 31;
async function collect(stream) {
    let text = '';
    for await (const chunk of stream)
        text += String(chunk);
    return text;
}
/** `late` gets what arrives after the deadline. */
async function bounded(step, withinMs, call, late) {
    let timer;
    let over = false;
    const deadline = new Promise((_, reject) => {
        timer = setTimeout(() => {
            over = true;
            reject(new EngineError(step, 0, `no answer within ${withinMs} ms`));
        }, withinMs);
    });
    call.then((value) => {
        if (over)
            late?.(value);
    }, () => { });
    try {
        return await Promise.race([call, deadline]);
    }
    catch (error) {
        if (error instanceof EngineError)
            throw error;
        const { statusCode, message } = error;
        throw new EngineError(step, statusCode ?? 0, message ?? String(error));
    }
    finally {
        clearTimeout(timer);
    }
}
