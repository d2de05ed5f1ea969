// Outcomes and settings for tests that play no episode: what a worker would have told the ledger.

import { sha256 } from '../../src/shared/claim.ts';
import type { MemberId } from '../../src/shared/ledger/member-ledger.ts';
import type { RunSettings } from '../../src/shared/ledger/run-settings.ts';
import type { Completed } from '../../src/shared/outcome.ts';
import type { MemberJob } from '../../src/shared/queue.ts';

/** The one member of a job. */
export function memberOf(job: MemberJob): MemberId {
  const [[group, member]] = job.members as [[number, number]];
  return { run: job.run, group, member };
}

/** A completed member whose trajectory is claimed and kept nowhere. */
export function completedWith(member: number, reward: number, attempts = 1): Completed {
  const hex = sha256(`${member} ${reward}`);
  return {
    member,
    status: 'completed',
    reward,
    components: { env: reward },
    attempts,
    steps: 1,
    // All its digits are there again wherever it went: Lua would print fourteen.
    seconds: Math.SQRT1_2,
    diagnostics: [],
    trajectory: { key: `sha256/${hex}`, sha256: hex, bytes: 1 },
    certificate: {
      trajectory_sha256: hex,
      env: 'guess',
      image: null,
      runner: null,
      isolation: 'none',
      grade: 'outside',
      reward,
      report_sha256: null,
    },
  };
}

export function settingsWith(fields: Partial<RunSettings> & { groups: number; size: number }): RunSettings {
  const { groups, size, ...rest } = fields;
  const hex = sha256('no plan');
  return {
    name: 'test',
    incarnation: 'abc123',
    convention: 'trl',
    maxSteps: 10,
    store: '/nowhere',
    plan: { index: { key: `sha256/${hex}`, sha256: hex, bytes: 0 }, groups, groupSize: size },
    documentSha256: hex,
    sandbox: {
      image: 'none',
      memoryMb: 64,
      cpus: 1,
      pids: 16,
      tmpfsMb: 16,
      network: 'none',
      timeoutS: 5,
      outputKb: 64,
      exec: true,
      runtime: null,
      isolation: 'fresh',
    },
    pausedS: 3600,
    inFlight: 512,
    verifierCalls: null,
    verifier: null,
    keyFingerprint: null,
    ...rest,
  };
}
