// Another machine, as far as the network goes: a namespace with a cable to ours that can be pulled. As root and with
// iproute2; where they are not, the faults of the cable are left out, and said to be. Both ends are this machine's own.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
const run = promisify(execFile);
const RACK_PREFIX = 'farm-chaos-';
export class Rack {
    /** Our end's address, where what runs in the rack finds us. */
    address;
    /** Puts a command into the rack. */
    prefix;
    name;
    near;
    constructor(name, near, address) {
        this.name = name;
        this.near = near;
        this.address = address;
        this.prefix = ['ip', 'netns', 'exec', name];
    }
    /** Null where it cannot be had. */
    static async build() {
        if (process.getuid?.() !== 0)
            return null;
        const id = process.pid % 16_384;
        const [name, near, far] = [`${RACK_PREFIX}${process.pid}`, `fc${id}a`, `fc${id}b`];
        // A /30 of the block that is set aside for measuring between devices (RFC 2544): nobody's route leads there.
        const base = `198.18.${id >> 6}`;
        const low = (id & 63) * 4;
        const rack = new Rack(name, near, `${base}.${low + 1}`);
        try {
            await run('ip', ['netns', 'add', name]);
            await run('ip', ['link', 'add', near, 'type', 'veth', 'peer', 'name', far]);
            await run('ip', ['link', 'set', far, 'netns', name]);
            await run('ip', ['addr', 'add', `${rack.address}/30`, 'dev', near]);
            await run('ip', ['link', 'set', near, 'up']);
            await run('ip', ['-n', name, 'addr', 'add', `${base}.${low + 2}/30`, 'dev', far]);
            await run('ip', ['-n', name, 'link', 'set', far, 'up']);
            await run('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
            return rack;
        }
        catch {
            await rack.close();
            return null;
        }
    }
    async cut(cut) {
        await run('ip', ['link', 'set', this.near, cut ? 'down' : 'up']);
    }
    async close() {
        await run('ip', ['link', 'del', this.near]).catch(() => { });
        await run('ip', ['netns', 'del', this.name]).catch(() => { });
    }
}
/** Those of processes that are not there any more. */
export async function sweepRacks() {
    const { stdout } = await run('ip', ['netns', 'list']).catch(() => ({ stdout: '' }));
    for (const line of stdout.split('\n')) {
        const name = line.split(' ')[0];
        const pid = name.startsWith(RACK_PREFIX) ? name.slice(RACK_PREFIX.length) : '';
        if (/^\d+$/.test(pid) && !existsSync(`/proc/${pid}`))
            await run('ip', ['netns', 'del', name]).catch(() => { });
    }
}
