// Redis in trouble: killed and started again on its append-only file, or standing still for longer than any lock.
const SILENCE = {
    status: /does not answer/,
    top: /waiting for Redis.*since/,
    log: /waiting for Redis/,
    withinMs: 30_000,
};
export class RedisFault {
    what;
    visible;
    scene;
    kind;
    constructor(scene, kind) {
        this.scene = scene;
        this.kind = kind;
        this.what = `Redis ${kind}`;
        this.visible = kind === 'stopped' ? SILENCE : null;
    }
    async begin() {
        if (this.kind === 'killed')
            await this.scene.ledger.kill();
        else
            this.scene.ledger.signal('SIGSTOP');
    }
    async heal() {
        if (this.kind === 'killed')
            await this.scene.ledger.start();
        else
            this.scene.ledger.signal('SIGCONT');
    }
}
