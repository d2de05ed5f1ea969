// The verify worker: takes a member whose episode is rolled, asks the platform about the text that it ended with, and
// has the member accepted with the shaped reward. What the platform does wrong is no result; a key or platform that it
// refuses stops the run.

import type { Redis } from 'ioredis';
import { messageOf } from '../../shared/errors.ts';
import { dumpJson } from '../../shared/json/json.ts';
import type { Value } from '../../shared/json/value.ts';
import type { Blob } from '../../shared/ledger/blob.ts';
import { type Attempt, MemberLedger } from '../../shared/ledger/member-ledger.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { type Completed, completedSchema, detailOf } from '../../shared/outcome.ts';
import { readDocument, readHeld } from '../../shared/plan/reader.ts';
import { announce } from '../../shared/presence.ts';
import { consume, type MemberJob } from '../../shared/queue.ts';
import { putContent, readContent, readInline } from '../../shared/store/content.ts';
import { parseTrajectory } from '../../shared/trajectory.ts';
import { AttemptEnded, Attempts, type Running } from '../attempts.ts';
import type { Role, RoleContext } from '../role.ts';
import { type KnownRun, Runs } from '../runs.ts';
import { VerifierClient } from './client.ts';
import { reportToValue } from './report.ts';
import { type VerifyResult, verifyCompletions } from './verify.ts';

const RETRY_MS = 2_000;

export async function startVerifyWorker(context: RoleContext): Promise<Role> {
  const { redis, place, realm, worker, log, config } = context;
  const ledger = new MemberLedger(redis, worker);
  const attempts = new Attempts(ledger);
  const runs = new Runs(redis, config);
  const clients = new Clients(config.ambertraceApiKey);
  const presence = await announce(redis, { role: 'verify', realm, worker });

  async function handle(job: MemberJob): Promise<void> {
    const run = await runs.get(job.run);
    if ('refused' in run) return log.warn({ run: job.run, why: run.refused }, 'member left alone');
    const attempt = await ledger.begin(job, 'verify');
    if ('refused' in attempt) return log.debug({ ...job, why: attempt.refused }, 'not begun');
    const running = attempts.start(attempt, 'asking the verifier');
    const began = performance.now();
    try {
      const told = await settle(attempt, run, running);
      log.info(
        {
          run: job.run,
          group: job.group,
          member: job.member,
          attempt: attempt.attempt,
          task: attempt.taskId,
          wall_ms: Math.round(performance.now() - began),
          ...told,
        },
        'verified',
      );
    } finally {
      attempts.end(running);
    }
  }

  async function settle(attempt: Attempt, run: KnownRun, running: Running): Promise<Record<string, unknown>> {
    try {
      const record = completedSchema.parse(JSON.parse(attempt.rolled ?? 'null'));
      const began = performance.now();
      const result = await ask(attempt, run, record, running);
      running.signal.throwIfAborted();
      if (result.status === 'no_result') return await without(redis, ledger, attempt, result);
      const { verified, blobs } = await verifiedRecord(
        run,
        record,
        result,
        attempt.blobs,
        (performance.now() - began) / 1000,
      );
      return {
        status: 'completed',
        reward: verified.reward,
        certified: result.report?.proofChecked ?? null,
        floored: result.floored,
        ledger: await ledger.accept(attempt, verified, blobs),
      };
    } catch (error) {
      const reason = running.signal.aborted ? running.signal.reason : error;
      if (reason instanceof AttemptEnded && reason.reason !== 'stop') return { status: 'ended', why: reason.reason };
      const stopped = reason instanceof AttemptEnded;
      await ledger.fail(attempt, {
        cause: 'verifier_unavailable',
        detail: detailOf(messageOf(error)),
        charged: false,
        delayMs: stopped ? 0 : RETRY_MS,
      });
      if (!stopped) {
        log.error({ run: attempt.run, error: messageOf(error) }, 'a part of the farm failed');
        await new RunLedger(redis, attempt.run).setState('paused', messageOf(error));
      }
      return { status: 'given back', why: messageOf(error) };
    }
  }

  async function ask(attempt: Attempt, run: KnownRun, record: Completed, running: Running): Promise<VerifyResult> {
    const { settings, store } = run;
    if (settings.verifier === null)
      return { status: 'no_result', cause: 'misconfigured', detail: 'the run has no domain' };
    const document = await readDocument(store, attempt.place);
    const prompt = document.prompt === null ? '' : await readHeld(store, document.prompt);
    const metadata = document.metadata === null ? null : await readHeld(store, document.metadata);
    const blob = attempt.blobs.find((b) => b.sha256 === record.trajectory.sha256);
    const bytes = blob ? await readInline(blob.bytes, record.trajectory) : await readContent(store, record.trajectory);
    const completion: Value = parseTrajectory(bytes, 'the rolled trajectory').transitions.at(-1)?.action ?? null;
    running.phase = 'asking the verifier';
    const client = clients.of(attempt.run, settings.verifier);
    const [result] = await verifyCompletions(settings.verifier, [{ prompt, completion, metadata }], {
      ask: (queries) => client.ask(queries),
    });
    return result as VerifyResult;
  }

  const consumer = consume(place, realm, 'verify', context.concurrency, handle, (error) =>
    log.error({ error: messageOf(error) }, 'queue'),
  );
  const close = async (): Promise<void> => {
    attempts.close();
    await presence.stop();
    clients.close();
  };
  return {
    drain: async () => {
      await consumer.drain();
      await close();
    },
    stop: async () => {
      const closing = consumer.close();
      attempts.abortAll();
      clients.close();
      while (attempts.count > 0) await new Promise((resolve) => setTimeout(resolve, 20));
      await closing;
      await close();
    },
  };
}

/** The rolled record with the verifier's part: the reward is the sum, the components name the parts. */
async function verifiedRecord(
  run: KnownRun,
  rolled: Completed,
  result: Extract<VerifyResult, { status: 'completed' }>,
  blobs: readonly Blob[],
  seconds: number,
): Promise<{ verified: Completed; blobs: Blob[] }> {
  const reward = rolled.certificate.env === 'text' ? result.reward : rolled.reward + result.reward;
  const report =
    result.report === null
      ? null
      : await putContent(run.store, Buffer.from(dumpJson(reportToValue(result.report), { sortKeys: true })));
  const verified: Completed = {
    ...rolled,
    reward,
    components: { ...rolled.components, ...result.components },
    seconds: Number((rolled.seconds + seconds).toFixed(6)),
    ...(report === null ? {} : { report: report.claim }),
    certificate: {
      ...rolled.certificate,
      grade: rolled.certificate.env === 'text' ? 'verifier' : rolled.certificate.grade,
      reward,
      report_sha256: report === null ? null : report.claim.sha256,
    },
  };
  const inline =
    report === null || report.inline === null ? [] : [{ sha256: report.claim.sha256, bytes: report.inline }];
  return { verified, blobs: [...blobs, ...inline] };
}

async function without(
  redis: Redis,
  ledger: MemberLedger,
  attempt: Attempt,
  result: Extract<VerifyResult, { status: 'no_result' }>,
): Promise<Record<string, unknown>> {
  const { cause, detail } = result;
  const said = await ledger.accept(
    attempt,
    { member: attempt.member, status: 'no_result', cause, detail: detailOf(detail), attempts: attempt.attempt },
    [],
  );
  // Ten thousand more questions with this key or platform would be refused just the same.
  if (cause === 'misconfigured')
    await new RunLedger(redis, attempt.run).setState('stopped', `the verifier refuses: ${detail}`, '2');
  return { status: 'no_result', cause, detail, ledger: said };
}

/** One client a run: its limits and what it learned of the platform belong together. */
class Clients {
  private readonly all = new Map<string, { client: VerifierClient; controller: AbortController }>();
  private readonly apiKey: string | null;

  constructor(apiKey: string | null) {
    this.apiKey = apiKey;
  }

  of(run: string, config: NonNullable<KnownRun['settings']['verifier']>): VerifierClient {
    let entry = this.all.get(run);
    if (!entry) {
      const controller = new AbortController();
      const client = new VerifierClient({
        baseUrl: config.baseUrl,
        platformId: config.platformId,
        apiKey: this.apiKey ?? '',
        concurrency: config.maxConcurrency,
        signal: controller.signal,
      });
      entry = { client, controller };
      this.all.set(run, entry);
    }
    return entry.client;
  }

  close(): void {
    for (const { controller } of this.all.values()) controller.abort();
    this.all.clear();
  }
}
