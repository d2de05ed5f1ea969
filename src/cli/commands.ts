// The commands' table: each verb with its arguments and options, and a small file of its own that is loaded when it is called.

import { Command } from 'commander';
import { EXIT, FarmError } from '../shared/errors.ts';
import type { Slots } from '../shared/lane.ts';
import { count, integer, number, port, slots, upTo } from './option-values.ts';

type Exit = Promise<number>;

/** `set` is told how the verb that was called has ended. */
export function program(set: (exit: number) => void): Command {
  const farm = new Command('farm')
    .description('Graded rollouts for reinforcement-learning trainers: nothing lost, nothing forged.')
    .showHelpAfterError('(usage: ./farm --help)')
    .exitOverride();
  const verb = (usage: string, description: string): Command =>
    farm.command(usage).description(description).exitOverride();
  const collect = (value: string, all: string[]): string[] => [...all, value];
  const run =
    <A extends unknown[]>(action: (...args: A) => Exit) =>
    async (...args: A): Promise<void> =>
      set(await action(...args));

  verb('demo', 'set up what is missing, then run the main job here')
    .option('--json', 'one JSON object on stdout')
    .action(run(async (o: { json?: boolean }) => (await import('./verbs/demo.ts')).demo({ json: o.json ?? false })));
  verb('test', 'set up what is missing, then run the whole test suite')
    .argument('[filter...]', 'only test files whose path contains one of these')
    .action(run(async (filter: string[]) => (await import('./verbs/test.ts')).test({ filter })));
  verb('doctor', 'what is there, what is missing, how to get it')
    .option('--json', 'one JSON object')
    .action(
      run(async (o: { json?: boolean }) => (await import('./verbs/doctor.ts')).doctor({ json: o.json ?? false })),
    );
  verb('check', 'resolve a spec and report every problem in it')
    .argument('FILE')
    .action(run(async (file: string) => (await import('./verbs/check.ts')).check({ file })));
  verb('run', 'plan, submit and follow a run; the same id again resumes it')
    .argument('SPEC')
    .option('--run-id <ID>', 'resume this run, or name a new one')
    .option('--workers <N>', 'rollout slots of the workers that it brings; rollout=N,light=N says both', slots)
    .option('--detach', 'leave it to workers that are there already')
    .option('--json', 'one JSON object at the end')
    .action(
      run(async (spec: string, o: { runId?: string; workers?: number | Slots; detach?: boolean; json?: boolean }) =>
        (await import('./verbs/run.ts')).run({
          spec,
          runId: o.runId ?? null,
          workers: o.workers ?? null,
          detach: o.detach ?? false,
          json: o.json ?? false,
        }),
      ),
    );
  verb('up', 'every role in one place, until it is stopped')
    .option('--rollout-workers <N>', 'rollout slots; rollout=N,light=N,interactive=N says how many of each', slots)
    .option('--verify-workers <N>', 'verify slots', count)
    .option('--port <P>', 'of the gateway (default: 8787, if it is free)', port)
    .option('--config <NAME=FILE>', 'what the gateway scores with; may be repeated', collect, [])
    .action(
      run(async (o: { rolloutWorkers?: number | Slots; verifyWorkers?: number; port?: number; config: string[] }) =>
        (await import('./verbs/up.ts')).up({
          rollout: o.rolloutWorkers ?? null,
          verify: o.verifyWorkers ?? null,
          port: o.port ?? null,
          configs: o.config,
        }),
      ),
    );
  verb('serve', 'the gateway alone: rewards, runs and results over HTTP')
    .option('--host <HOST>', 'address to bind; anything but loopback needs FARM_API_KEY', '127.0.0.1')
    .option('--port <P>', '0 takes any free one', port, 8787)
    .option('--config <NAME=FILE>', 'what it scores with, the first by default; may be repeated', collect, [])
    .option('--end-token <TEXT>', 'ends a turn in /get_reward, instead of the usual ones; may be repeated', collect, [])
    .action(
      run(async (o: { host: string; port: number; config: string[]; endToken: string[] }) =>
        (await import('./verbs/serve.ts')).serve({
          host: o.host,
          port: o.port,
          configs: o.config,
          endTokens: o.endToken,
        }),
      ),
    );
  verb('worker', 'one role, to be scaled by starting more: rollout, verify or collect')
    .argument('ROLE')
    .option('--concurrency <N>', 'members at once; of a rollout worker rollout=N,light=N,interactive=N', slots)
    .option('--health <[HOST:]PORT>', 'answers probes there: /healthz, /readyz')
    .action(
      run(async (role: string, o: { concurrency?: number | Slots; health?: string }) =>
        (await import('./verbs/worker.ts')).worker({
          role,
          concurrency: o.concurrency ?? null,
          health: o.health ?? null,
        }),
      ),
    );
  verb('engine-gate', 'lets workers have boxes of a Docker engine (DOCKER_HOST) without having the engine')
    .option('--listen <ADDRESS>', 'unix:///PATH or tcp://HOST:PORT', 'unix:///run/farm/engine.sock')
    .option('--images <DIR>', 'archives of the images that boxes are made of: loaded where the engine lacks them')
    .action(
      run(async (o: { listen: string; images?: string }) =>
        (await import('./verbs/engine-gate.ts')).engineGate({ listen: o.listen, images: o.images ?? null }),
      ),
    );
  verb('runs', 'the runs that are known')
    .option('--json', 'one JSON list')
    .action(run(async (o: { json?: boolean }) => (await import('./verbs/runs.ts')).runs({ json: o.json ?? false })));
  verb('rm', 'delete a run and what only it claims')
    .argument('RUN')
    .action(run(async (id: string) => (await import('./verbs/rm.ts')).rm({ run: id })));
  verb('status', 'counts by state, rate, and what is being waited for')
    .argument('[RUN]')
    .option('--json', 'one JSON value')
    .action(
      run(async (id: string | undefined, o: { json?: boolean }) =>
        (await import('./verbs/status.ts')).status({ run: id ?? null, json: o.json ?? false }),
      ),
    );
  verb('top', 'live view of the runs and their slowest members').action(
    run(async () => (await import('./verbs/top.ts')).top()),
  );
  verb('results', 'closed groups, one JSON a line, in the order in which they closed')
    .argument('RUN')
    .option('--after <CURSOR>', 'only those after this cursor')
    .option('--follow', 'wait for more until the run is over')
    .action(
      run(async (id: string, o: { after?: string; follow?: boolean }) =>
        (await import('./verbs/results.ts')).results({ run: id, after: o.after ?? null, follow: o.follow ?? false }),
      ),
    );
  verb('cancel', 'stop a run; what was not accepted has no result')
    .argument('RUN')
    .action(run(async (id: string) => (await import('./verbs/cancel.ts')).cancel({ run: id })));
  verb('verify-run', 'account for every member and every hash')
    .argument('RUN', 'a run, a folder …/runs/RUN, or s3://bucket/prefix/runs/RUN')
    .option('--json', 'one JSON object')
    .action(
      run(async (id: string, o: { json?: boolean }) =>
        (await import('./verbs/verify-run.ts')).verifyRunVerb({ run: id, json: o.json ?? false }),
      ),
    );
  verb('score', 'rewards for given completions: through the verifier of CONFIG, or in an environment')
    .argument('[CONFIG]')
    .requiredOption('--input <FILE>', 'JSON lines {"prompt", "completion", "metadata"?}')
    .option('--env <NAME>', 'in place of CONFIG: single-step episodes in this environment')
    .option('--env-config <JSON>', 'its config: JSON or @FILE')
    .option('--seed <N>', 'its seed', integer)
    .action(
      run(async (config: string | undefined, o: { input: string; env?: string; envConfig?: string; seed?: bigint }) => {
        if ((config === undefined) === (o.env === undefined))
          throw new FarmError('usage', 'score: either CONFIG or --env NAME is wanted', { exit: EXIT.input });
        if (config !== undefined) return (await import('./verbs/score.ts')).score({ config, input: o.input });
        const { env = '', envConfig = '{}', seed = 0n, input } = o;
        return (await import('./verbs/score-env.ts')).scoreEnv({ env, envConfig, seed, input });
      }),
    );
  verb('simulate', 'a stand-in for AmberTrace over real HTTP; it certifies nothing')
    .option('--host <HOST>', 'address to bind', '127.0.0.1')
    .option('--port <PORT>', '0 takes any free one', port, 0)
    .option('--rulebook <NAME>', 'built-in name or FILE; may be repeated', collect, [])
    .option('--misbehave <JSON>', 'JSON or @FILE: how to fail')
    .action(
      run(async (o: { host: string; port: number; rulebook: string[]; misbehave?: string }) =>
        (await import('./verbs/simulate.ts')).simulate({
          host: o.host,
          port: o.port,
          rulebooks: o.rulebook,
          ...(o.misbehave === undefined ? {} : { misbehave: o.misbehave }),
        }),
      ),
    );
  verb('rollout', 'one episode, here and now, in a real sandbox')
    .requiredOption('--env <NAME>', 'environment')
    .requiredOption('--config <JSON>', 'JSON or @FILE')
    .requiredOption('--actions <JSON>', 'JSON list or @FILE')
    .requiredOption('--out <FILE>', 'where the trajectory goes')
    .option('--seed <N>', 'seed', integer)
    .option('--max-steps <N>', 'steps at most (default: as many as there are actions)', count)
    .option('--sandbox <KIND>', 'docker, or subprocess: no isolation at all, for trusted actions only', 'docker')
    .action(
      run(
        async (o: {
          env: string;
          config: string;
          actions: string;
          out: string;
          seed?: bigint;
          maxSteps?: number;
          sandbox: string;
        }) => (await import('./verbs/rollout.ts')).rollout({ ...o, seed: o.seed ?? 0n, maxSteps: o.maxSteps ?? null }),
      ),
    );
  verb('show', 'summarize a trajectory file and check it for itself')
    .argument('FILE')
    .action(run(async (file: string) => (await import('./verbs/show.ts')).show({ file })));
  verb('replay', 'play recorded episodes again and compare everything that they say')
    .argument('FILE|RUN...')
    .option('--json', 'one JSON object')
    .action(
      run(async (targets: string[], o: { json?: boolean }) =>
        (await import('./verbs/replay.ts')).replay({ targets, json: o.json ?? false }),
      ),
    );
  const store = verb('store', 'what lies in the store, apart from any one run');
  store
    .command('gc')
    .description('remove what no run claims and is older than a week')
    .option('--store <ADDRESS>', 'a folder or s3://bucket/prefix (default: FARM_STORE)')
    .option('--dry-run', 'only list it')
    .option('--json', 'one JSON object')
    .action(
      run(async (o: { store?: string; dryRun?: boolean; json?: boolean }) =>
        (await import('./verbs/store-gc.ts')).storeGc({
          store: o.store ?? null,
          dryRun: o.dryRun ?? false,
          json: o.json ?? false,
        }),
      ),
    );
  verb('export', 'write recorded episodes as what trainers load')
    .argument('RUN|DIR|FILE...')
    .requiredOption('--format <F>', 'records, prompts, crucible or parquet')
    .requiredOption('--out <PATH>', 'a file; for crucible a folder')
    .option('--json', 'one JSON object')
    .action(
      run(async (targets: string[], o: { format: string; out: string; json?: boolean }) =>
        (await import('./verbs/export.ts')).exportVerb({ targets, ...o, json: o.json ?? false }),
      ),
    );
  verb(
    'bench',
    'a benchmark, with its baseline in the same run (sandbox, verify, queue, scale), or the farm under fire (chaos)',
  )
    .argument('NAME')
    .option('--json', 'one JSON object')
    .option('--seed <N>', 'sandbox, chaos: fixes what is drawn; without it one is drawn and shown', integer)
    .option('--kills <K>', 'chaos: how often something is killed', number)
    .option('--faults <F>', 'chaos: how many faults beside them (default: half as many)', number)
    .option(
      '--store <KIND>',
      'chaos: folder (with faults of its disk) or s3 (a server of its own, with faults of its answers)',
    )
    .option('--only <KIND>', 'chaos: of the faults beside kills only this kind; may be repeated', collect, [])
    .option('--members <M>', 'scale, chaos: members of the run', upTo(10_000_000))
    .option('--minutes <T>', 'chaos: in which it must be done', count)
    .option('--full', 'sandbox: longer, at every width')
    .option('--grades <N>', 'sandbox: so many grades, one after another, and the memory that they take', count)
    .option('--tasks <DIR>', 'sandbox: grades of its tasks.jsonl and completions.jsonl')
    .option('--trusted', 'sandbox: those completions are harmless and may run without a sandbox too')
    .action(
      run(
        async (
          name: string,
          o: {
            json?: boolean;
            seed?: bigint;
            kills?: number;
            faults?: number;
            only: string[];
            store?: string;
            members?: number;
            minutes?: number;
            full?: boolean;
            grades?: number;
            tasks?: string;
            trusted?: boolean;
          },
        ) =>
          (await import('./verbs/bench.ts')).bench({
            name,
            json: o.json ?? false,
            seed: o.seed ?? null,
            kills: o.kills ?? null,
            faults: o.faults ?? null,
            only: o.only,
            store: o.store ?? null,
            members: o.members ?? null,
            minutes: o.minutes ?? null,
            full: o.full ?? false,
            grades: o.grades ?? null,
            tasks: o.tasks ?? null,
            trusted: o.trusted ?? false,
          }),
      ),
    );
  for (const [name, what] of NOT_BUILT) {
    farm
      .command(name, { hidden: true })
      .allowUnknownOption()
      .allowExcessArguments()
      .action(() => {
        throw new FarmError('not_built', `${name}: ${what} is not built yet`, { exit: EXIT.input });
      });
  }
  return farm;
}

const NOT_BUILT: readonly (readonly [string, string])[] = [
  ['eval', 'sweeps'],
  ['report', 'the report of a sweep'],
];
