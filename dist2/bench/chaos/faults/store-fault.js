// The disk under the store is full, refuses writes, or stands still.
const SAYS = { full: /the disk is full/, readonly: /read-only/i, frozen: /store/i };
const WITHIN_MS = 30_000;
export class StoreFault {
    what;
    visible;
    disk;
    kind;
    constructor(disk, kind) {
        this.disk = disk;
        this.kind = kind;
        this.what = `the store's disk ${kind}`;
        const says = SAYS[kind];
        // A frozen disk fails nobody: whoever writes waits, and the member's phase says where.
        this.visible = kind === 'frozen' ? null : { status: says, top: says, log: says, withinMs: WITHIN_MS };
    }
    async begin() {
        if (this.kind === 'full')
            this.disk.fill();
        else if (this.kind === 'readonly')
            await this.disk.refuseWrites(true);
        else
            await this.disk.freeze(true);
    }
    async heal() {
        if (this.kind === 'full')
            this.disk.empty();
        else if (this.kind === 'readonly')
            await this.disk.refuseWrites(false);
        else
            await this.disk.freeze(false);
    }
}
