// The verify worker: takes a member whose episode is rolled, asks the platform about the text that it ended with, and
// has the member accepted with the shaped reward. What the platform does wrong is no result; a key or platform that it
// refuses stops the run.
import { dumpJson } from '../../shared/json/json.js';
import { RunLedger } from '../../shared/ledger/run-ledger.js';
import { completedSchema, detailOf } from '../../shared/outcome.js';
import { readDocument, readHeld } from '../../shared/plan/reader.js';
import { putContent, readContent, readInline } from '../../shared/store/content.js';
import { parseTrajectory } from '../../shared/trajectory.js';
import { startStageWorker } from '../stage-worker.js';
import { FleetAsker } from './fleet/asker.js';
import { reportToValue } from './report.js';
import { verifyCompletions } from './verify.js';
/** So long may calls at work for other processes take when this one goes away. */
const DRAIN_MS = 2_000;
export async function startVerifyWorker(context) {
    const askers = new Askers(context);
    return await startStageWorker(context, {
        stage: 'verify',
        line: 'verified',
        phase: 'asking the verifier',
        failure: 'verifier_unavailable',
        perform: async (attempt, run, running, ledger) => {
            const record = completedSchema.parse(JSON.parse(attempt.rolled ?? 'null'));
            const config = run.settings.verifier;
            const began = performance.now();
            const result = config === null
                ? { status: 'no_result', cause: 'misconfigured', detail: 'the run has no domain' }
                : await askOne(attempt, run.settings, config, running.signal, askers, await itemOf(attempt, run, record));
            running.signal.throwIfAborted();
            // The upstream is shut for everybody: the run waits for it, at no cost to its members.
            if (result.status === 'no_result' && result.held)
                return await held(context, attempt, ledger, result.detail);
            if (result.status === 'no_result')
                return await without(context, attempt, ledger, result);
            const { verified, blobs } = await verifiedRecord(run, record, result, attempt.blobs, performance.now() - began);
            const told = { status: 'completed', reward: verified.reward, certified: result.report?.proofChecked ?? null };
            return { ...told, floored: result.floored, ledger: await ledger.accept(attempt, verified, blobs) };
        },
        // The attempts' own signals end what they wait for; calls at work for other processes end with their time.
        close: () => askers.close(DRAIN_MS),
    });
}
async function askOne(attempt, settings, config, signal, askers, item) {
    const options = {
        epoch: `${attempt.run}:${settings.incarnation}`,
        cache: config.cache,
        // The attempt's lease and its group's deadline bound the wait, and end it through the signal.
        deadlineMs: null,
        signal,
        budget: settings.verifierCalls,
    };
    const [result] = await verifyCompletions(config, [item], {
        ask: (queries) => askers.of(config).ask(queries, options),
    });
    return result;
}
/** What is asked about: the text of the episode's last action, with the task's prompt and metadata. */
async function itemOf(attempt, { store }, record) {
    const document = await readDocument(store, attempt.place);
    const prompt = document.prompt === null ? '' : await readHeld(store, document.prompt);
    const metadata = document.metadata === null ? null : await readHeld(store, document.metadata);
    const blob = attempt.blobs.find((b) => b.sha256 === record.trajectory.sha256);
    const bytes = blob ? await readInline(blob.bytes, record.trajectory) : await readContent(store, record.trajectory);
    const completion = parseTrajectory(bytes, 'the rolled trajectory').transitions.at(-1)?.action ?? null;
    return { prompt, completion, metadata };
}
/** The rolled record with the verifier's part: the reward is the sum, the components name the parts. */
async function verifiedRecord(run, rolled, result, blobs, wallMs) {
    const alone = rolled.certificate.env === 'text';
    const reward = alone ? result.reward : rolled.reward + result.reward;
    const text = result.report === null ? null : dumpJson(reportToValue(result.report), { sortKeys: true });
    const report = text === null ? null : await putContent(run.store, Buffer.from(text));
    // The library's breakdown ends with its total, which is the reward and no part of it.
    const { total: _, ...parts } = result.components;
    const verified = {
        ...rolled,
        reward,
        components: { ...rolled.components, ...parts },
        seconds: Number((rolled.seconds + wallMs / 1000).toFixed(6)),
        ...(report === null ? {} : { report: report.claim }),
        certificate: {
            ...rolled.certificate,
            grade: alone ? 'verifier' : rolled.certificate.grade,
            reward,
            report_sha256: report === null ? null : report.claim.sha256,
        },
    };
    const inline = report === null || report.inline === null ? [] : [{ sha256: report.claim.sha256, bytes: report.inline }];
    return { verified, blobs: [...blobs, ...inline] };
}
async function without(context, attempt, ledger, result) {
    const { cause, detail } = result;
    const { member, attempt: attempts } = attempt;
    const said = await ledger.accept(attempt, { member, status: 'no_result', cause, detail: detailOf(detail), attempts }, []);
    // Ten thousand more questions with this key or platform would be refused just the same.
    if (cause === 'misconfigured') {
        await new RunLedger(context.redis, attempt.run).setState('stopped', `the verifier refuses: ${detail}`, '2');
    }
    return { status: 'no_result', cause, detail, ledger: said };
}
/** The member goes back uncharged, and its run waits: the driver tries again, and stops it after `limits.paused_s`. */
async function held(context, attempt, ledger, detail) {
    const failure = { cause: 'verifier_unavailable', detail: detailOf(detail), charged: false, delayMs: 0 };
    const said = await ledger.fail(attempt, failure);
    await new RunLedger(context.redis, attempt.run).setState('paused', detailOf(`the verifier is shut: ${detail}`));
    return { status: 'given back', why: detail, ledger: said };
}
/** One asker an upstream (and number of calls at once): its runs share it. */
class Askers {
    all = new Map();
    context;
    constructor(context) {
        this.context = context;
    }
    of({ baseUrl, platformId, maxConcurrency, requestsPerSecond }) {
        const name = JSON.stringify([baseUrl, String(platformId), maxConcurrency, requestsPerSecond]);
        let asker = this.all.get(name);
        if (!asker) {
            const { redis, place, log, config } = this.context;
            const upstream = { baseUrl, platformId, apiKey: config.ambertraceApiKey ?? '' };
            const limits = { concurrency: maxConcurrency, requestsPerSecond };
            asker = new FleetAsker({ redis, place, upstream, limits, log });
            this.all.set(name, asker);
        }
        return asker;
    }
    async close(graceMs) {
        await Promise.all([...this.all.values()].map((asker) => asker.close(graceMs)));
    }
}
