// Who is at work in this process beside whom. When the process dies, the ledger must know whether a member was alone in it:
// of one that was begun alone it is told before anything else begins, and a suspect (a worker died under it) is begun only
// when no other member is at work, and none begins until it ends.
//
//   members ── a suspect waits: nobody new enters ──all have left──> the suspect ──it left──> the next suspect, or members
export class Companies {
    ledger;
    members = 0;
    guests = 0;
    suspect = false;
    closed = false;
    loner = null;
    suspectsWaiting = [];
    membersWaiting = [];
    constructor(ledger) {
        this.ledger = ledger;
    }
    /** `count` members at work beside others. Begins nothing if the process is going away. */
    async among(count, begin, work) {
        while (!this.closed && (this.suspect || this.suspectsWaiting.length > 0))
            await new Promise((resolve) => this.membersWaiting.push(resolve));
        if (!this.closed)
            await this.at(count, false, begin, work);
    }
    /** One member, and no other beside it. Begins nothing if the process is going away. */
    async alone(begin, work) {
        while (!this.closed && (this.suspect || this.members > 0))
            await new Promise((resolve) => this.suspectsWaiting.push(resolve));
        if (this.closed)
            return;
        this.suspect = true;
        await this.at(1, true, begin, work);
    }
    /** What is no member waits for nobody: before it begins, the ledger knows that a member beside it is alone no more. Gives what ends it. */
    async guest() {
        this.guests++;
        let here = true;
        const leave = () => {
            if (here)
                this.guests--;
            here = false;
        };
        await this.part().catch((error) => {
            leave();
            throw error;
        });
        return leave;
    }
    /** Nothing begins any more: whoever waits hears of it. */
    close() {
        this.closed = true;
        this.wake();
    }
    async at(count, suspects, begin, work) {
        const alone = count === 1 && this.members === 0 && this.guests === 0;
        this.members += count;
        try {
            if (!alone)
                await this.part();
            const begun = begin({ alone, suspects });
            if (alone)
                this.loner = { begun, parted: null };
            await work(await begun);
        }
        finally {
            this.members -= count;
            if (this.members === 0)
                this.loner = null;
            if (suspects)
                this.suspect = false;
            this.wake();
        }
    }
    async part() {
        const { loner } = this;
        if (loner === null)
            return;
        loner.parted ??= this.tell(loner).catch((error) => {
            loner.parted = null;
            throw error;
        });
        await loner.parted;
    }
    async tell({ begun }) {
        const [attempt] = await begun.catch(() => []);
        if (attempt !== undefined && !('refused' in attempt))
            await this.ledger.joined(attempt);
    }
    wake() {
        const free = !this.suspect && this.members === 0;
        if (this.closed || free) {
            const suspects = this.suspectsWaiting;
            this.suspectsWaiting = [];
            for (const go of suspects)
                go();
            if (suspects.length > 0 && !this.closed)
                return;
        }
        if (!this.closed && (this.suspect || this.suspectsWaiting.length > 0))
            return;
        const members = this.membersWaiting;
        this.membersWaiting = [];
        for (const go of members)
            go();
    }
}
