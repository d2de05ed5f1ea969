// Which call is which: the table of paths and methods, and the calls that are too small for a room of their own.

import type { Exchange } from './exchange.ts';
import { type FigureReader, farmSamples } from './figures.ts';
import type { Following } from './follow.ts';
import type { RewardCall } from './get-reward.ts';
import { sayError } from './get-reward.ts';
import { type GatewayMetrics, prometheusText, type Sample } from './metrics.ts';
import { pageOf } from './page.ts';
import { HttpProblem } from './problem.ts';
import type { RunsCall } from './runs-call.ts';
import type { ScoreCall } from './score-call.ts';
import type { Desk, Readiness } from './server.ts';

export interface DeskParts {
  score: ScoreCall;
  reward: RewardCall;
  runs: RunsCall;
  following: Following;
  figures: FigureReader;
  metrics: GatewayMetrics;
  /** What is inside, for the figures. */
  gauges: () => Sample[];
  readiness: () => Promise<Readiness>;
}

export class GatewayDesk implements Desk {
  private readonly parts: DeskParts;

  constructor(parts: DeskParts) {
    this.parts = parts;
  }

  readiness(): Promise<Readiness> {
    return this.parts.readiness();
  }

  drain(): void {
    this.parts.following.drain();
  }

  async serve(exchange: Exchange): Promise<void> {
    const { path, method } = exchange;
    const read = method === 'GET' || method === 'HEAD';
    if (path === '/get_reward')
      return method === 'POST' ? this.parts.reward.serve(exchange) : sayError(exchange, 405, 'POST required');
    if (path === '/v1/score') return method === 'POST' ? this.parts.score.serve(exchange) : refuse(['POST']);
    if (path === '/v1/runs')
      return method === 'POST'
        ? this.parts.runs.submit(exchange)
        : read
          ? this.parts.runs.list(exchange)
          : refuse(['GET', 'POST']);
    const [, id, results] = /^\/v1\/runs\/([^/]+)(\/results)?$/.exec(path) ?? [];
    if (id !== undefined) {
      const run = decoded(id);
      if (results) return read ? this.follow(exchange, run) : refuse(['GET']);
      return read
        ? this.parts.runs.status(exchange, run)
        : method === 'DELETE'
          ? this.parts.runs.cancel(exchange, run)
          : refuse(['GET', 'DELETE']);
    }
    if (path === '/metrics') return read ? this.metrics(exchange) : refuse(['GET']);
    if (path === '/') return read ? this.page(exchange) : refuse(['GET']);
    throw new HttpProblem(
      404,
      'not_found',
      'there is no such path here',
      'POST /v1/score, POST /get_reward, /v1/runs, /healthz, /readyz, /metrics, /',
    );
  }

  private follow(exchange: Exchange, run: string): Promise<void> {
    const follow = exchange.query.get('follow');
    if (follow !== null && !['0', '1', 'true', 'false'].includes(follow))
      throw new HttpProblem(400, 'follow', 'follow must be 1 or 0');
    const after = exchange.query.get('after');
    return this.parts.following.serve(exchange, run, after === '' ? null : after, follow === '1' || follow === 'true');
  }

  private async metrics(exchange: Exchange): Promise<void> {
    const { metrics, figures, gauges } = this.parts;
    const text = prometheusText([...metrics.list(), ...gauges(), ...farmSamples(await figures.read())]);
    exchange.send(200, 'text/plain; version=0.0.4; charset=utf-8', text);
  }

  private async page(exchange: Exchange): Promise<void> {
    const [figures, { missing }] = await Promise.all([this.parts.figures.read(), this.parts.readiness()]);
    exchange.send(200, 'text/html; charset=utf-8', pageOf(figures, missing), {
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    });
  }
}

function refuse(allowed: readonly string[]): never {
  throw new HttpProblem(405, 'method', `this path takes ${allowed.join(' and ')}`, undefined, {
    allow: allowed.join(', '),
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
