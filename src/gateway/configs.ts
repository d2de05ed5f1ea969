// The configs that the gateway scores with, by name; the first is the default one. Read once, before anything is bound:
// a config that is broken, or without a `domain`, ends the command.

import path from 'node:path';
import { sha256 } from '../shared/claim.ts';
import type { Config } from '../shared/config.ts';
import { EXIT, FarmError, inputError } from '../shared/errors.ts';
import { dumpJson } from '../shared/json/json.ts';
import { printProblems } from '../shared/spec/problem.ts';
import { readSpec } from '../shared/spec/reader.ts';
import type { VerifierConfig } from '../shared/spec/verifier-config.ts';
import { HttpProblem } from './problem.ts';

export interface ScoreConfig {
  name: string;
  verifier: VerifierConfig;
  /** The config's hash: answers are shared between calls under equal configs. */
  epoch: string;
}

export class ScoreConfigs {
  private readonly byName: ReadonlyMap<string, ScoreConfig>;

  constructor(configs: readonly ScoreConfig[]) {
    this.byName = new Map(configs.map((config) => [config.name, config]));
  }

  get all(): readonly ScoreConfig[] {
    return [...this.byName.values()];
  }

  /** Throws HttpProblem for one that there is not. */
  get(name: string | null): ScoreConfig {
    const found = name === null ? this.all[0] : this.byName.get(name);
    if (found) return found;
    if (name === null)
      throw new HttpProblem(
        400,
        'no_config',
        'this gateway was started without a config',
        'start it with --config FILE',
      );
    throw new HttpProblem(
      400,
      'config_unknown',
      `there is no config ${JSON.stringify(name.slice(0, 100))}`,
      `known: ${[...this.byName.keys()].join(', ')}`,
    );
  }
}

/** `NAME=FILE`, or `FILE` under its base name. Throws FarmError (exit 2). */
export async function readConfigs(
  given: readonly string[],
  machine: Config,
): Promise<{ configs: ScoreConfigs; warnings: string[] }> {
  const configs: ScoreConfig[] = [];
  const warnings: string[] = [];
  for (const text of given) {
    const [, name, file] = /^([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)$/s.exec(text) ?? [null, baseName(text), text];
    if (configs.some((config) => config.name === name))
      throw inputError('config_twice', `--config: the name ${name} is given twice`, 'name one of them NAME=FILE');
    const read = await readSpec(file as string, machine);
    if (!read.ok) throw new FarmError('spec_invalid', printProblems(read.problems), { exit: EXIT.input });
    const verifier = read.kind === 'run' ? read.spec.verifier : read.verifier;
    if (verifier === null)
      throw inputError('no_domain', `${file}: there is no domain, so nothing to score with`, 'add a domain section');
    const document = read.kind === 'run' ? read.spec.document : read.document;
    for (const warning of read.warnings) warnings.push(`${file}: ${warning}`);
    if (verifier.parser.broken !== null) warnings.push(`${file}: no completion can be read: ${verifier.parser.broken}`);
    configs.push({
      name: name as string,
      verifier,
      epoch: sha256(dumpJson(document, { sortKeys: true, compact: true })).slice(0, 32),
    });
  }
  return { configs: new ScoreConfigs(configs), warnings };
}

function baseName(file: string): string {
  return path.basename(file).replace(/\.(?:ya?ml|json)$/i, '');
}
