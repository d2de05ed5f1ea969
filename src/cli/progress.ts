// How far a run is, on stderr: a bar on a terminal, a line now and then elsewhere.

import type { Tick } from '../shared/ledger/run-ledger.ts';
import type { Screen } from './screen.ts';

const WIDTH = 32;
const LINE_EVERY_MS = 5_000;
const BAR_EVERY_MS = 100;

export class Progress {
  private readonly run: string;
  private readonly plan: { groups: number; groupSize: number };
  private readonly screen: Screen;
  private readonly began = performance.now();
  private shownAt = Number.NEGATIVE_INFINITY;
  private shown = '';
  private first: number | null = null;

  constructor(run: string, plan: { groups: number; groupSize: number }, screen: Screen) {
    this.run = run;
    this.plan = plan;
    this.screen = screen;
  }

  show(tick: Tick): void {
    const now = performance.now();
    this.first ??= tick.accepted;
    if (now - this.shownAt < (this.screen.live ? BAR_EVERY_MS : LINE_EVERY_MS)) return;
    this.shownAt = now;
    const seconds = (now - this.began) / 1000;
    const rate = seconds > 1 ? (tick.accepted - this.first) / seconds : 0;
    const total = (this.plan.groups + tick.spares) * this.plan.groupSize;
    const share = total === 0 ? 1 : tick.accepted / total;
    const paused = tick.state === 'paused' ? ' paused' : '';
    const figures = `${tick.accepted}/${total} members, ${tick.closed} groups closed, ${tick.begun} at work, ${rate.toFixed(1)}/s${paused}`;
    if (this.screen.live) {
      const full = Math.round(share * WIDTH);
      this.screen.draw(`${'█'.repeat(full)}${'░'.repeat(WIDTH - full)} ${figures}`);
    } else if (figures !== this.shown) {
      this.screen.lines(`farm: ${this.run} ${figures}\n`);
    }
    this.shown = figures;
  }

  end(): void {
    this.screen.end();
  }
}
