// Who is at work in this process beside whom. When the process dies, the ledger must know whether a member was alone in it:
// of one that was begun alone it is told before anything else begins, and a suspect (a worker died under it) is begun only
// when no other member is at work, and none begins until it ends.
//
//   members ── a suspect waits: nobody new enters ──all have left──> the suspect ──it left──> the next suspect, or members

import type { Attempt, Company, MemberLedger } from '../shared/ledger/member-ledger.ts';

export type Begun = readonly (Attempt | { refused: string })[];
type Begin = (company: Company) => Promise<Begun>;
type Work = (begun: Begun) => Promise<void>;

/** The one that began with nothing beside it, and what tells the ledger that this is over. */
interface Loner {
  begun: Promise<Begun>;
  parted: Promise<void> | null;
}

export class Companies {
  private readonly ledger: Pick<MemberLedger, 'joined'>;
  private members = 0;
  private guests = 0;
  private suspect = false;
  private closed = false;
  private loner: Loner | null = null;
  private suspectsWaiting: (() => void)[] = [];
  private membersWaiting: (() => void)[] = [];

  constructor(ledger: Pick<MemberLedger, 'joined'>) {
    this.ledger = ledger;
  }

  /** `count` members at work beside others. Begins nothing if the process is going away. */
  async among(count: number, begin: Begin, work: Work): Promise<void> {
    while (!this.closed && (this.suspect || this.suspectsWaiting.length > 0))
      await new Promise<void>((resolve) => this.membersWaiting.push(resolve));
    if (!this.closed) await this.at(count, false, begin, work);
  }

  /** One member, and no other beside it. Begins nothing if the process is going away. */
  async alone(begin: Begin, work: Work): Promise<void> {
    while (!this.closed && (this.suspect || this.members > 0))
      await new Promise<void>((resolve) => this.suspectsWaiting.push(resolve));
    if (this.closed) return;
    this.suspect = true;
    await this.at(1, true, begin, work);
  }

  /** What is no member waits for nobody: before it begins, the ledger knows that a member beside it is alone no more. Gives what ends it. */
  async guest(): Promise<() => void> {
    this.guests++;
    let here = true;
    const leave = (): void => {
      if (here) this.guests--;
      here = false;
    };
    await this.part().catch((error: unknown) => {
      leave();
      throw error;
    });
    return leave;
  }

  /** Nothing begins any more: whoever waits hears of it. */
  close(): void {
    this.closed = true;
    this.wake();
  }

  private async at(count: number, suspects: boolean, begin: Begin, work: Work): Promise<void> {
    const alone = count === 1 && this.members === 0 && this.guests === 0;
    this.members += count;
    try {
      if (!alone) await this.part();
      const begun = begin({ alone, suspects });
      if (alone) this.loner = { begun, parted: null };
      await work(await begun);
    } finally {
      this.members -= count;
      if (this.members === 0) this.loner = null;
      if (suspects) this.suspect = false;
      this.wake();
    }
  }

  private async part(): Promise<void> {
    const { loner } = this;
    if (loner === null) return;
    loner.parted ??= this.tell(loner).catch((error: unknown) => {
      loner.parted = null;
      throw error;
    });
    await loner.parted;
  }

  private async tell({ begun }: Loner): Promise<void> {
    const [attempt] = await begun.catch(() => []);
    if (attempt !== undefined && !('refused' in attempt)) await this.ledger.joined(attempt);
  }

  private wake(): void {
    const free = !this.suspect && this.members === 0;
    if (this.closed || free) {
      const suspects = this.suspectsWaiting;
      this.suspectsWaiting = [];
      for (const go of suspects) go();
      if (suspects.length > 0 && !this.closed) return;
    }
    if (!this.closed && (this.suspect || this.suspectsWaiting.length > 0)) return;
    const members = this.membersWaiting;
    this.membersWaiting = [];
    for (const go of members) go();
  }
}
