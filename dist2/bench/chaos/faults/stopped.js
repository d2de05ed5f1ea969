// A process stands still (SIGSTOP) for longer than any lock or lease, and then goes on as if nothing had happened: what it
// still says for the members that it had must not count twice.
export class Stopped {
    visible = null;
    what;
    scene;
    constructor(scene, name) {
        this.scene = scene;
        this.what = name;
    }
    async begin() {
        this.scene.troupe.signal(this.what, 'SIGSTOP');
    }
    async heal() {
        this.scene.troupe.signal(this.what, 'SIGCONT');
    }
}
