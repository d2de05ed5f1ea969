// `farm demo`: sets the machine up, then runs the main job on embedded defaults: real Redis, real sandboxes, the local
// AmberTrace simulator over HTTP, a folder as the store if no other is named. A new run each time.

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../shared/config.ts';
import { EXIT } from '../../shared/errors.ts';
import { type GroupRecord, groupRecordSchema } from '../../shared/group.ts';
import { openStoreAddress } from '../../shared/store/open.ts';
import { resultsFromStore } from '../../shared/store/results.ts';
import { isS3Address } from '../../shared/store/s3-address.ts';
import { startSimulator } from '../../simulator/server.ts';
import { setUp } from '../set-up.ts';
import { runSpec } from './run.ts';

const SPEC = fileURLToPath(new URL('../../../examples/demo.yaml', import.meta.url));
/** The simulator takes any key of the right form: it certifies nothing. */
const KEY = 'at_demo_simulator';

export async function demo(args: { json: boolean }): Promise<number> {
  await setUp();
  const simulator = await startSimulator({ host: '127.0.0.1', port: 0, rulebooks: ['grant-eligibility'] });
  const began = performance.now();
  try {
    const config = { ...readConfig(), ambertraceApiKey: KEY, ambertraceBaseUrl: simulator.baseUrl };
    const environment = { AMBERTRACE_API_KEY: KEY, AMBERTRACE_BASE_URL: simulator.baseUrl };
    const report = await runSpec(
      config,
      { spec: SPEC, runId: null, workers: null, detach: false, json: args.json },
      { level: 'warn', environment, alone: true, onOpened: () => {} },
    );
    if (report.exit !== EXIT.ok) return report.exit;
    const store = await openStoreAddress(config.store);
    const groups: GroupRecord[] = [];
    for await (const { line } of resultsFromStore(store, report.run, 0))
      groups.push(groupRecordSchema.parse(JSON.parse(line)));
    const seconds = Number(((performance.now() - began) / 1000).toFixed(2));
    const members = groups.flatMap((g) => g.members);
    if (args.json) {
      const folder = below(config.store, `runs/${report.run}`);
      const signal = groups.filter((g) => !g.degenerate).length;
      process.stdout.write(
        `${JSON.stringify({ run: report.run, groups: groups.length, members: members.length, seconds, with_signal: signal, completed: report.status?.members.completed, no_result: report.status?.members.by_cause, folder })}\n`,
      );
    } else process.stdout.write(pageOf(report.run, groups, seconds, config.store));
    return EXIT.ok;
  } finally {
    await simulator.close();
  }
}

/** A place in the store, as people name it. */
function below(store: string, key: string): string {
  if (!isS3Address(store)) return path.join(store, key);
  const [place, query] = store.split('?');
  return `${place?.replace(/\/+$/, '')}/${key}${query === undefined ? '' : `?${query}`}`;
}

function pageOf(run: string, groups: readonly GroupRecord[], seconds: number, store: string): string {
  const rows = [...groups].sort((a, b) => a.group - b.group).map(rowOf);
  const head = ['group', 'task', 'mean', 'std', 'signal', 'completed', 'no result', 'slowest'];
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => (row[i] as string).length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (i === 1 ? cell.padEnd(widths[i] as number) : cell.padStart(widths[i] as number)))
      .join('  ');
  const members = groups.reduce((n, g) => n + g.members.length, 0);
  const signal = groups.filter((g) => !g.degenerate).length;
  return [
    line(head),
    ...rows.map(line),
    '',
    `run ${run}: ${groups.length} groups, ${members} members in ${seconds.toFixed(1)} s (${(members / seconds).toFixed(1)}/s); ${signal} groups have a signal, ${groups.length - signal} are degenerate`,
    `manifest and shards  ${below(store, `runs/${run}`)}`,
    `trajectories         ${below(store, 'objects')}`,
    'The Docker engine may still be running: it is a service of this machine. Everything else has ended.',
    '',
    'Try next:',
    `  ./farm replay ${run}        # play every episode again, and compare all that was recorded`,
    `  ./farm results ${run}       # what a trainer reads: rewards and advantages, group by group`,
    `  ./farm verify-run ${run}    # account for every member and every hash`,
    '',
  ].join('\n');
}

function rowOf(group: GroupRecord): string[] {
  const completed = group.members.flatMap((m) => (m.status === 'completed' ? [m] : []));
  const causes = new Map<string, number>();
  for (const m of group.members) if (m.status === 'no_result') causes.set(m.cause, (causes.get(m.cause) ?? 0) + 1);
  const figure = (x: number | null): string => (x === null ? '–' : x.toFixed(3));
  const slowest = Math.max(0, ...completed.map((m) => m.seconds));
  return [
    String(group.group),
    group.task_id,
    figure(group.mean),
    figure(group.std),
    group.degenerate ? '–' : 'yes',
    `${completed.length}/${group.members.length}`,
    [...causes].map(([cause, n]) => `${n} ${cause}`).join(', ') || '–',
    `${slowest.toFixed(2)} s`,
  ];
}
