// Redis is full: its limit is set to what it holds. Outcomes must still be taken, and nothing new is opened.
import { RunLedger } from '../../../shared/ledger/run-ledger.js';
export class RedisFull {
    what = 'Redis full';
    visible = {
        status: /Redis is above its high-water mark: nothing new is opened/,
        top: /Redis is above its high-water mark: nothing new is opened/,
        log: /Redis is above its high-water mark/,
        withinMs: 20_000,
    };
    scene;
    before = null;
    constructor(scene) {
        this.scene = scene;
    }
    async begin() {
        const { admin } = this.scene.ledger;
        const { next, groups } = await new RunLedger(admin, this.scene.run).fields();
        // Where everything is open already, nothing waits for room.
        if (Number(next) >= Number(groups))
            this.visible = null;
        const answer = (await admin.call('CONFIG', 'GET', 'maxmemory'));
        this.before = String(answer.flat()[1] ?? '0');
        const used = /^used_memory:(\d+)/m.exec(await admin.info('memory'))?.[1];
        await admin.call('CONFIG', 'SET', 'maxmemory', used);
    }
    async heal() {
        if (this.before !== null)
            await this.scene.ledger.admin.call('CONFIG', 'SET', 'maxmemory', this.before);
    }
}
