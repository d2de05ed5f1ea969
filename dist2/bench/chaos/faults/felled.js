// Processes are killed outright (SIGKILL) and stay down until they are raised: one, the run's driver, or all of a role.
// What the dead held must be in other hands within ten seconds, unless nobody is left who could take it.
import { setTimeout as wait } from 'node:timers/promises';
import { RunLedger } from '../../../shared/ledger/run-ledger.js';
import { heldBy } from '../held.js';
const TAKE_OVER_MS = 10_000;
const LOOK_MS = 100;
export class Felled {
    visible;
    scene;
    names;
    othersTakeOver;
    held = [];
    atMs = 0;
    constructor(scene, names, visible, othersTakeOver) {
        this.scene = scene;
        this.names = names;
        this.visible = visible;
        this.othersTakeOver = othersTakeOver;
    }
    get what() {
        return this.names.join(', ');
    }
    async begin() {
        const { troupe, ledger, run } = this.scene;
        const pids = this.names.map((name) => troupe.pidOf(name));
        await Promise.all(this.names.map((name) => troupe.fell(name)));
        this.atMs = performance.now();
        this.held = await heldBy(ledger.admin, run, (worker) => pids.some((pid) => worker.split('-')[1] === String(pid))).catch(() => []);
    }
    async heal() {
        for (const name of this.names)
            this.scene.troupe.raise(name);
    }
    /** Meaningful while it is the only fault, and the run was not paused meanwhile. */
    async judge() {
        if (!this.othersTakeOver || this.held.length === 0)
            return [];
        const { ledger, run } = this.scene;
        const began = new RunLedger(ledger.admin, run);
        let waiting = this.held;
        while (waiting.length > 0 && performance.now() - this.atMs < TAKE_OVER_MS) {
            if ((await began.field('state')) !== 'running')
                return [];
            const now = await heldBy(ledger.admin, run, () => true);
            waiting = waiting.filter((h) => now.some((n) => n.id === h.id && n.token === h.token));
            if (waiting.length > 0)
                await wait(LOOK_MS);
        }
        return waiting.map((h) => `not taken over within ${TAKE_OVER_MS / 1000} s of the death of ${h.worker}: member ${h.id}`);
    }
}
