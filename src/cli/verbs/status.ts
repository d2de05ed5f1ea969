// `farm status [RUN]`: counts, rate, what is being waited for; answers while the run is at work, and for a run that
// Redis has forgotten from its manifest.

import { readConfig } from '../../shared/config.ts';
import { EXIT } from '../../shared/errors.ts';
import { knownRuns } from '../../shared/ledger/known-runs.ts';
import { type RunStatus, unreadable } from '../../shared/ledger/run-status.ts';
import type { Redis } from '../../shared/redis/client.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { SLOW_MS } from '../../shared/redis/silence.ts';
import { type RunView, readRun } from '../run-view.ts';
import { finishedStatus, unknownRun } from '../stored-run.ts';

export async function status(args: { run: string | null; json: boolean }): Promise<number> {
  const config = readConfig();
  const { redis } = await connectRedis(config);
  try {
    if (args.run === null) {
      const all = (
        await Promise.all((await knownRuns(redis, null)).map((run) => readRun(redis, run).catch(unreadable(run))))
      ).filter((s) => s !== null);
      if (args.json) process.stdout.write(`${JSON.stringify(all)}\n`);
      else for (const s of all) process.stdout.write(`${line(s)}\n`);
      return EXIT.ok;
    }
    const found = (await readRun(redis, args.run)) ?? (await finishedStatus(config, args.run));
    if (found === null) throw unknownRun(args.run);
    process.stdout.write(args.json ? `${JSON.stringify(found)}\n` : `${people(found)}${await slowRedis(redis)}`);
    return EXIT.ok;
  } finally {
    redis.disconnect();
  }
}

/** A line where Redis takes its time to answer: then everything waits for it. */
export async function slowRedis(redis: Redis): Promise<string> {
  const asked = performance.now();
  await redis.ping();
  const ms = Math.round(performance.now() - asked);
  return ms < SLOW_MS ? '' : `  Redis takes ${ms} ms to answer: everything waits for it\n`;
}

export function line(s: RunStatus): string {
  const rate = s.rate_per_s === null ? '' : `  ${s.rate_per_s.toFixed(1)}/s`;
  const eta = s.eta_s === null ? '' : `  ${s.eta_s} s to go`;
  return `${s.run}  ${s.state}  groups ${s.groups.closed}/${s.groups.planned}  members ${s.members.accepted}/${s.members.planned}${rate}${eta}`;
}

export function people(s: RunView): string {
  const causes = Object.entries(s.members.by_cause).map(([cause, n]) => `${cause} ${n}`);
  const lines = [
    line(s),
    ...(s.reason ? [`  ${s.reason}${pause(s)}`] : []),
    `  completed ${s.members.completed}, without result ${s.members.no_result}${causes.length > 0 ? ` (${causes.join(', ')})` : ''}, at work ${s.members.in_flight}`,
    ...(s.verifier ? [verifierLine(s.verifier)] : []),
    ...s.waiting_for.map(
      (w) =>
        `  waiting for ${w.member}: ${w.phase}, since ${w.since_s} s${w.deadline_s === null ? '' : `; its group closes in ${w.deadline_s} s`}`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}

function pause(s: RunStatus): string {
  if (s.paused_for_s === undefined) return '';
  const end = s.stops_in_s === undefined ? '' : `; the run stops in ${s.stops_in_s} s unless it is back`;
  return `, for ${s.paused_for_s} s${end}`;
}

function verifierLine(v: NonNullable<RunView['verifier']>): string {
  const since = v.since === null ? '' : ` since ${v.since}`;
  const why = v.breaker === 'closed' || v.reason === '' ? '' : ` (${v.reason})`;
  const paused =
    v.rate_limited_for_ms > 0 ? `, rate limited for ${(v.rate_limited_for_ms / 1000).toFixed(1)} s more` : '';
  const refused = v.refused === null ? '' : `, refuses: ${v.refused}`;
  return `  verifier ${v.base_url} platform ${v.platform_id}: breaker ${v.breaker}${since}${why}${paused}${refused}; ${v.in_flight} calls under way, ${v.waiting} queries waiting`;
}
