// `farm score CONFIG --input ITEMS.jsonl`: rewards for given completions, one line an item, in input order. What an
// item contains earns its reward; a broken file, or a verifier that refuses key or platform, ends the command.

import { readConfig } from '../../shared/config.ts';
import { EXIT, FarmError, inputError, missingError } from '../../shared/errors.ts';
import { dumpJson } from '../../shared/json/json.ts';
import type { Value } from '../../shared/json/value.ts';
import { printProblems } from '../../shared/spec/problem.ts';
import { readSpec } from '../../shared/spec/reader.ts';
import type { VerifierConfig } from '../../shared/spec/verifier-config.ts';
import { type Answer, VerifierClient } from '../../workers/verify/client.ts';
import { parsedToValue } from '../../workers/verify/parser.ts';
import { reportToValue } from '../../workers/verify/report.ts';
import { type VerifyResult, verifyCompletions } from '../../workers/verify/verify.ts';
import { print, ScoreItems } from '../score-items.ts';

export async function score(args: { config: string; input: string }): Promise<number> {
  const machine = readConfig();
  const { verifier, warnings } = await verifierOf(args.config, machine);
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  const input = await ScoreItems.read(args.input);
  if (machine.ambertraceApiKey === null)
    throw missingError(
      'key_missing',
      'AMBERTRACE_API_KEY is not set',
      'set it to a key of the platform; for the stand-in any that begins with at_ will do',
    );
  const stop = new AbortController();
  let exit: number = EXIT.interrupted;
  const onTerm = (): void => {
    exit = EXIT.terminated;
    stop.abort();
  };
  const onInt = (): void => stop.abort();
  process.once('SIGTERM', onTerm);
  process.once('SIGINT', onInt);
  const client = new VerifierClient({
    baseUrl: verifier.baseUrl,
    platformId: verifier.platformId,
    apiKey: machine.ambertraceApiKey,
    concurrency: verifier.maxConcurrency,
    requestsPerSecond: verifier.requestsPerSecond,
    signal: stop.signal,
  });
  try {
    const cache = new Map<string, Answer>();
    for (const { start, items } of input.slices()) {
      const results = await verifyCompletions(verifier, items, { ask: (queries) => client.ask(queries), cache });
      if (stop.signal.aborted) return exit;
      const refused = results.find((result) => result.status === 'no_result' && result.cause === 'misconfigured');
      if (refused?.status === 'no_result')
        throw inputError(
          'verifier_refused',
          `the verifier refuses this configuration: ${refused.detail}`,
          'check AMBERTRACE_API_KEY, domain.platform_id and domain.base_url',
        );
      await print(results.map((result, i) => `${rowOf(start + i, result)}\n`).join(''));
    }
    return EXIT.ok;
  } finally {
    client.close();
    process.off('SIGTERM', onTerm);
    process.off('SIGINT', onInt);
  }
}

async function verifierOf(
  file: string,
  machine: ReturnType<typeof readConfig>,
): Promise<{ verifier: VerifierConfig; warnings: string[] }> {
  const read = await readSpec(file, machine);
  if (!read.ok) throw new FarmError('spec_invalid', printProblems(read.problems), { exit: EXIT.input });
  const verifier = read.kind === 'run' ? read.spec.verifier : read.verifier;
  if (verifier === null)
    throw inputError('no_domain', `${file}: there is no domain, so nothing to score with`, 'add a domain section');
  const { broken } = verifier.parser;
  // The library takes such arguments and then reads no completion at all; so do we, but not silently.
  const warnings = broken === null ? read.warnings : [...read.warnings, `no completion can be read: ${broken}`];
  return { verifier, warnings };
}

function rowOf(index: number, result: VerifyResult): string {
  const row = new Map<string, Value>([
    ['index', BigInt(index)],
    ['status', result.status],
  ]);
  if (result.status === 'no_result') {
    // A field that is always there is easier to read than one that is sometimes: null, never a number.
    row.set('reward', null).set('components', new Map()).set('cause', result.cause).set('detail', result.detail);
  } else {
    row.set('reward', result.reward).set('components', new Map(Object.entries(result.components)));
    row.set('parsed', result.parsed && parsedToValue(result.parsed));
    row.set('report', result.report && reportToValue(result.report));
    row.set('cache_key', result.cacheKey).set('cached', result.cached);
    if (result.floored !== null) row.set('floored', result.floored);
  }
  return dumpJson(row);
}
