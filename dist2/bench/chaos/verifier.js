// The verifier of a farm under fire: the house's stand-in as a child of ours, always on the same port; started anew to
// behave badly, and killed to be down.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { missingError } from '../../shared/errors.js';
import { boundToUs } from './bound.js';
const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const START_MS = 20_000;
/** So long takes a call when all is well. */
const LATENCY_MS = 40;
export class Verifier {
    port;
    environment;
    child = null;
    constructor(port, environment) {
        this.port = port;
        this.environment = environment;
    }
    static async start(environment) {
        const verifier = new Verifier(await freePort(), environment);
        await verifier.behave(null);
        return verifier;
    }
    get baseUrl() {
        return `http://127.0.0.1:${this.port}`;
    }
    async down() {
        const child = this.child;
        this.child = null;
        if (child === null)
            return;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
    }
    /** Null: well. */
    async behave(badly) {
        await this.down();
        const misbehave = { latency_ms: LATENCY_MS, fail: badly === null ? [] : [{ kind: badly }] };
        const [command, ...args] = boundToUs([
            process.execPath,
            MAIN,
            'simulate',
            '--port',
            String(this.port),
            '--misbehave',
            JSON.stringify(misbehave),
        ]);
        const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'], env: this.environment });
        this.child = child;
        const ready = once(createInterface({ input: child.stdout }), 'line', { signal: AbortSignal.timeout(START_MS) });
        const ended = once(child, 'exit').then(() => {
            throw missingError('simulator_start', `the verifier's stand-in did not start on port ${this.port}`);
        });
        ended.catch(() => { });
        await Promise.race([ready, ended]);
    }
}
export async function freePort() {
    const server = net.createServer();
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    await new Promise((resolve) => server.close(resolve));
    return port;
}
