// Runs over the network: submit a spec, its state, cancel. A run that is submitted here is worked on by the shared
// realm's workers and driven by whoever adopts it, this process among them; without workers it is refused (503).

import { randomBytes } from 'node:crypto';
import { openRun } from '../producer/open-run.ts';
import type { Config } from '../shared/config.ts';
import { keyOfRun, type RunKey } from '../shared/ledger/key-of-run.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import { type RunStatus, readStatus } from '../shared/ledger/run-status.ts';
import type { Log } from '../shared/log.ts';
import { holding, lanesOf, lanesWithout, otherKeys, shortKey } from '../shared/manning.ts';
import { presentIn, type RoleName } from '../shared/presence.ts';
import { processIdentity } from '../shared/process-identity.ts';
import { SHARED_REALM } from '../shared/realm.ts';
import type { Redis } from '../shared/redis/client.ts';
import { openStoreAddress, RUN_ID } from '../shared/store/open.ts';
import { HttpProblem } from './problem.ts';
import { readSubmitted, type SubmittedSpec } from './submitted-spec.ts';

export interface RunDeskOptions {
  redis: Redis;
  config: Config;
  log: Log;
  /** Verifiers that our key may go to. */
  baseUrls: readonly string[];
  /** The state of a run that only the store knows any more. */
  finished: (run: string) => Promise<RunStatus | null>;
}

export class RunDesk {
  private readonly options: RunDeskOptions;

  constructor(options: RunDeskOptions) {
    this.options = options;
  }

  async submit(bytes: Buffer, runId: string | null): Promise<{ status: RunStatus; created: boolean }> {
    const { redis, config, baseUrls, log } = this.options;
    const submitted = await readSubmitted(bytes, config, baseUrls);
    const run = runId ?? submitted.runId ?? `run-${randomBytes(5).toString('hex')}`;
    if (!RUN_ID.test(run))
      throw new HttpProblem(
        400,
        'run_id',
        `${JSON.stringify(run.slice(0, 80))} is not a run id`,
        'letters, digits, ".", "_" and "-", at most 64, the first a letter or digit',
      );
    const { spec, source } = submitted;
    const key = await keyOfRun(redis, run, spec.verifier, config.ambertraceApiKey);
    await this.refuseWithoutWorkers(submitted, key);
    const store = await openStoreAddress(spec.store);
    const owner = `${processIdentity()}`;
    try {
      const opened = await openRun({
        run,
        redis,
        spec,
        source,
        store,
        realm: SHARED_REALM,
        owner,
        key: key.wanted,
      });
      // Whoever adopts it drives it: this process as soon as any other.
      await opened.ledger.undrive(owner);
      log.info({ run, groups: opened.settings.plan.groups, resumed: opened.resumed }, 'run submitted');
      return { status: (await readStatus(redis, run)) as RunStatus, created: !opened.resumed };
    } finally {
      await store.close();
    }
  }

  async status(run: string): Promise<RunStatus> {
    const status = RUN_ID.test(run)
      ? ((await readStatus(this.options.redis, run)) ?? (await this.options.finished(run)))
      : null;
    if (status === null) throw unknownRun(run);
    return status;
  }

  async cancel(run: string): Promise<RunStatus> {
    const status = await this.status(run);
    if (status.state !== 'done' && status.state !== 'cancelled')
      await new RunLedger(this.options.redis, run).setState('cancelled', 'cancelled over the network');
    return await this.status(run);
  }

  private async refuseWithoutWorkers({ source }: SubmittedSpec, { wanted, held }: RunKey): Promise<void> {
    const { redis, config } = this.options;
    if (source.verified > 0 && config.ambertraceApiKey === null)
      throw new HttpProblem(
        503,
        'no_key',
        'the spec has verified tasks, and this gateway has no AMBERTRACE_API_KEY',
        'start the gateway with the platform’s key in its environment',
      );
    const shared = await presentIn(redis, SHARED_REALM);
    const unmanned = lanesWithout(holding(shared, wanted), lanesOf(source));
    const missing: RoleName[] = [...new Set(unmanned.map((lane) => (lane === 'verify' ? 'verify' : 'rollout')))];
    if (!shared.some((one) => one.role === 'collect')) missing.push('collect');
    if (missing.length === 0) return;
    const theirs = otherKeys(shared, unmanned, wanted).join(', ');
    const whose = wanted === held ? 'this gateway’s AmberTrace key' : 'the AmberTrace key that the run was opened with';
    const why = theirs === '' ? '' : ` with ${whose} (${shortKey(wanted)}; theirs: ${theirs})`;
    throw new HttpProblem(
      503,
      'no_workers',
      `there is no worker for ${missing.join(', ')}${why}`,
      'start ./farm up, or ./farm worker ROLE, on the same Redis, with slots for the spec’s environments',
      { 'retry-after': '5' },
    );
  }
}

/** Roles that runs need and no live worker of the shared realm has. */
export async function missingRoles(redis: Redis, verified: boolean): Promise<RoleName[]> {
  const roles = new Set((await presentIn(redis, SHARED_REALM)).map((one) => one.role));
  const wanted: RoleName[] = ['rollout', 'collect', ...(verified ? ['verify' as const] : [])];
  return wanted.filter((role) => !roles.has(role));
}

export function unknownRun(run: string): HttpProblem {
  return new HttpProblem(404, 'unknown_run', `there is no run ${JSON.stringify(run.slice(0, 80))} here`);
}
