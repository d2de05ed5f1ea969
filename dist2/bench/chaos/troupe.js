// The farm's processes under fire: several of each role, each a child of ours started by the command line as a user would.
// One that ends is started again after a rest, as a service manager does; one that was felled stays down until it is raised.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { within } from '../../shared/within.js';
import { boundToUs } from './bound.js';
const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const REST_MS = 700;
export class Troupe {
    /** Those who ended without being told to. */
    deaths = [];
    starts = 0;
    actors = new Map();
    logs;
    leaving = false;
    constructor(parts, logs) {
        this.logs = logs;
        for (const part of parts)
            this.actors.set(part.name, { part, child: null, ended: Promise.resolve(), felled: true, timer: null });
    }
    get names() {
        return [...this.actors.keys()];
    }
    of(role) {
        return [...this.actors.values()].filter((a) => a.part.role === role).map((a) => a.part.name);
    }
    pidOf(name) {
        return this.actor(name).child?.pid ?? null;
    }
    nameOf(pid) {
        return this.names.find((name) => this.pidOf(name) === pid) ?? null;
    }
    /** Starts it, unless it runs; from now on it is kept running. */
    raise(name) {
        const actor = this.actor(name);
        actor.felled = false;
        if (actor.child === null && actor.timer === null)
            this.start(actor);
    }
    /** SIGKILL, and it stays down. */
    async fell(name) {
        const actor = this.actor(name);
        actor.felled = true;
        if (actor.timer !== null)
            clearTimeout(actor.timer);
        actor.timer = null;
        actor.child?.kill('SIGKILL');
        await actor.ended;
    }
    signal(name, signal) {
        this.actor(name).child?.kill(signal);
    }
    /** Asks all to drain; those who are still there after `graceMs` are named. */
    async leave(graceMs) {
        this.leaving = true;
        for (const actor of this.actors.values()) {
            if (actor.timer !== null)
                clearTimeout(actor.timer);
            actor.child?.kill('SIGCONT');
            actor.child?.kill('SIGTERM');
        }
        const ends = [...this.actors.values()].map((actor) => actor.ended);
        await within(Promise.all(ends), graceMs, null);
        return this.names.filter((name) => this.actor(name).child !== null);
    }
    async kill() {
        this.leaving = true;
        for (const actor of this.actors.values()) {
            if (actor.timer !== null)
                clearTimeout(actor.timer);
            actor.child?.kill('SIGKILL');
        }
        await Promise.all([...this.actors.values()].map((a) => a.ended));
    }
    actor(name) {
        const actor = this.actors.get(name);
        if (actor === undefined)
            throw new Error(`nobody is called ${name}`);
        return actor;
    }
    start(actor) {
        const { part } = actor;
        this.starts++;
        const [command, ...args] = boundToUs([...part.prefix, process.execPath, MAIN, ...part.args]);
        const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: part.environment });
        actor.child = child;
        createInterface({ input: child.stderr }).on('line', (line) => this.logs.add(part.name, line));
        actor.ended = new Promise((resolve) => {
            const over = (code, signal) => {
                actor.child = null;
                resolve();
                if (actor.felled || this.leaving)
                    return;
                this.deaths.push({ name: part.name, code, signal });
                this.logs.add(part.name, `(ended: ${signal ?? `exit ${code}`})`);
                actor.timer = setTimeout(() => {
                    actor.timer = null;
                    if (!actor.felled && !this.leaving)
                        this.start(actor);
                }, REST_MS);
            };
            child.once('error', () => over(null, null));
            child.once('exit', over);
        });
    }
}
