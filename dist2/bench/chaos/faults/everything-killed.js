// The power goes: every process of the farm and its Redis at once (SIGKILL), and all of it comes back.
export class EverythingKilled {
    what = 'everything';
    visible = null;
    scene;
    constructor(scene) {
        this.scene = scene;
    }
    async begin() {
        const { troupe, ledger } = this.scene;
        await Promise.all([ledger.kill(), ...troupe.names.map((name) => troupe.fell(name))]);
    }
    async heal() {
        const { troupe, ledger } = this.scene;
        await ledger.start();
        for (const name of troupe.names)
            troupe.raise(name);
    }
}
