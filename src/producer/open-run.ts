// From a checked spec to a run in the ledger: the plan goes to the store, the ledger is opened or found again (a changed
// spec under an old id is refused with the difference, another key by its fingerprint), shards that the store already has are taken over, and the
// driver's lease is taken.

import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { objectKey, sha256 } from '../shared/claim.ts';
import { inputError, missingError } from '../shared/errors.ts';
import { dumpJson, parseJson } from '../shared/json/json.ts';
import { isMap } from '../shared/json/value.ts';
import { refuseOtherKey } from '../shared/ledger/key-of-run.ts';
import { rememberRun } from '../shared/ledger/known-runs.ts';
import { requireVersion } from '../shared/ledger/ledger-version.ts';
import { followStore } from '../shared/ledger/reconcile.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import { identityOf, type RunSettings, readSettings, writeSettings } from '../shared/ledger/run-settings.ts';
import { MAX_ATTEMPTS } from '../shared/outcome.ts';
import type { PlanRef } from '../shared/plan/plan.ts';
import { PlanIndex } from '../shared/plan/plan-index.ts';
import { isKnownAlive, isKnownDead } from '../shared/process-identity.ts';
import type { Redis } from '../shared/redis/client.ts';
import { diffDocuments, NOTHING } from '../shared/spec/document.ts';
import type { TaskSource } from '../shared/spec/source.ts';
import type { RunSpec } from '../shared/spec/spec.ts';
import { documentSha256, parseManifest } from '../shared/store/manifest.ts';
import { manifestKey } from '../shared/store/shard-name.ts';
import { surveyShards } from '../shared/store/shard-survey.ts';
import type { Store } from '../shared/store/store.ts';
import { planGroups } from './plan.ts';
import { storePlan } from './plan-store.ts';

/** How long a group's members may wait for a slot, on the run's clock, before it closes as `not_started`. */
const SLOT_WAIT_MS = 24 * 3600 * 1000;
/** A driver that died elsewhere loses its lease in 10 s. */
const LEASE_WAIT_MS = 15_000;

export interface OpenedRun {
  ledger: RunLedger;
  settings: RunSettings;
  plan: PlanIndex;
  epoch: string;
  resumed: boolean;
}

export interface OpenOptions {
  run: string;
  redis: Redis;
  spec: RunSpec;
  source: TaskSource;
  store: Store;
  realm: string;
  owner: string;
  /** Fingerprint of the AmberTrace key that those hold who are to play it. */
  key: string | null;
}

export async function openRun(options: OpenOptions): Promise<OpenedRun> {
  const { run, redis, spec, store, realm, owner, key } = options;
  const ledger = new RunLedger(redis, run);
  const document = Buffer.from(dumpJson(spec.document, { sortKeys: true, compact: true }));
  const known = await ledger.fields();
  requireVersion(run, known);
  const before = known.settings ?? null;
  const sealed = before === null ? await sealedSpec(store, run) : null;
  let settings = before === null ? null : readSettings(before);
  if (settings !== null) await refuseChanged(run, store, settings.documentSha256, document);
  else if (sealed !== null) await refuseChanged(run, store, sealed, document);
  // Of a run that is over nothing is played any more.
  if (settings !== null && known.manifest === undefined) refuseOtherKey(run, settings, key);

  const survey = await surveyShards(store, run);
  if (survey.incarnation !== null && !survey.incarnation.endsWith(specMark(sha256(document)))) {
    throw inputError(
      'spec_changed',
      `run ${run} has shards in ${store.address} that were made with another spec`,
      'use another --run-id, or the spec as it was',
    );
  }
  // Also of a run that goes on: what the store has lost since is written anew, what is there costs a look.
  const over = (await ledger.field('manifest')) !== null;
  const plan =
    over && settings !== null
      ? settings.plan
      : await storePlan(store, planGroups(spec, options.source), spec.groupSize);
  options.source.release();
  if (!over) await store.put(objectKey(sha256(document)), document);
  if (settings === null) {
    settings = settingsOf(spec, plan, sha256(document), survey.incarnation ?? newIncarnation(sha256(document)), key);
    const opened = await ledger.open({
      settings: writeSettings(settings),
      groups: plan.groups,
      size: plan.groupSize,
      close: spec.groups.close,
      at_least: spec.groups.atLeast ?? 0,
      deadline_ms: Math.round(spec.groups.deadlineS * 1000),
      slot_wait_ms: SLOT_WAIT_MS,
      refill: spec.groups.refill,
      max_attempts: MAX_ATTEMPTS,
      opened_at: Date.now(),
    });
    if (!opened) {
      // Somebody else opened it meanwhile: perhaps with another spec, or another key.
      settings = readSettings((await ledger.field('settings')) as string);
      await refuseChanged(run, store, settings.documentSha256, document);
      refuseOtherKey(run, settings, key);
    }
  }
  const epoch = await takeLease(ledger, run, owner);
  // Groups in committed shards win: over a ledger that is new, and over one whose Redis lost writes.
  await followStore(ledger, store, identityOf(run, settings), survey.shards);
  await rememberRun(redis, run, realm);
  // A stopped or paused run that is run again goes on; its counts for the rate begin anew.
  // One that its verifier refused is over when its manifest is written: it stays what it was.
  const sealedBy = (await ledger.field('manifest')) === null ? null : await ledger.fields();
  if (!(sealedBy?.state === 'stopped' && sealedBy.exit === '2')) {
    await ledger.setState('running');
    if (sealedBy !== null) await ledger.setState('done');
  }
  await ledger.sit();
  return { ledger, settings, plan: await PlanIndex.open(store, settings.plan), epoch, resumed: before !== null };
}

/** Drawn once a run, and marked with its spec: shards say with it which spec they are of, also where Redis has forgotten. */
function newIncarnation(documentSha256: string): string {
  return randomBytes(6).toString('hex') + specMark(documentSha256);
}

function specMark(documentSha256: string): string {
  return documentSha256.slice(0, 12);
}

/** Hash of the spec of a run that is finished in the store, though Redis has forgotten it. */
async function sealedSpec(store: Store, run: string): Promise<string | null> {
  const bytes = await store.get(manifestKey(run));
  const parsed = bytes === null ? null : parseManifest(bytes);
  return parsed !== null && 'manifest' in parsed ? documentSha256(parsed.manifest.spec) : null;
}

async function refuseChanged(run: string, store: Store, before: string, document: Buffer): Promise<void> {
  if (before === sha256(document)) return;
  const old = await store.get(objectKey(before));
  const [was, is] = [old === null ? null : parseJson(old.toString('utf8')), parseJson(document.toString('utf8'))];
  const lines =
    was !== null && isMap(was) && isMap(is)
      ? diffDocuments(was, is)
      : ['the spec (its earlier form is not in this store)'];
  // A field that the run was opened without: the spec has it now, or the farm that opened the run did not know it.
  const grown = lines.some((line) => line.includes(`: ${NOTHING} →`));
  throw inputError(
    'spec_changed',
    `run ${run} exists with another spec: ${lines.slice(0, 10).join('; ')}`,
    grown
      ? 'use another --run-id, or the spec as it was; if the file is what it was, another version of the farm opened the run, without these fields: end it with that version'
      : 'use another --run-id, or the spec as it was',
  );
}

async function takeLease(ledger: RunLedger, run: string, owner: string): Promise<string> {
  const deadline = performance.now() + LEASE_WAIT_MS;
  for (;;) {
    const driven = await ledger.drive(owner);
    if ('epoch' in driven) return driven.epoch;
    if (isKnownDead(driven.heldBy)) {
      const taken = await ledger.drive(owner, driven.heldBy);
      if ('epoch' in taken) return taken.epoch;
    }
    // Alive on this machine: waiting for its lease to end is waiting for nothing.
    if (isKnownAlive(driven.heldBy) || performance.now() > deadline) {
      throw missingError(
        'run_busy',
        `run ${run} is being driven by another command`,
        `follow it with ./farm status ${run}, or stop that command first`,
      );
    }
    await wait(200);
  }
}

function settingsOf(
  spec: RunSpec,
  plan: PlanRef,
  documentSha256: string,
  incarnation: string,
  key: string | null,
): RunSettings {
  return {
    name: spec.name,
    incarnation,
    convention: spec.advantage,
    maxSteps: spec.maxSteps,
    store: spec.store,
    plan,
    documentSha256,
    sandbox: spec.sandbox,
    pausedS: spec.limits.pausedS,
    inFlight: spec.limits.inFlight,
    verifierCalls: spec.limits.verifierCalls,
    verifier: spec.verifier,
    keyFingerprint: key,
  };
}
