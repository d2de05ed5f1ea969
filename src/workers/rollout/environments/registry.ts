// The seven environments by name, each built from a config that was checked and resolved. Only names that
// `environment-config.ts` knows stand here, and every one of them does.

import type { Environment, EnvironmentContext, EnvironmentFactory } from '../../../shared/environment.ts';
import { inputError } from '../../../shared/errors.ts';
import type { ValueMap } from '../../../shared/json/value.ts';
import { CodeTaskEnvironment } from './code-task.ts';
import { CommandEnvironment } from './command.ts';
import { GuessEnvironment } from './guess.ts';
import { HttpTaskEnvironment } from './http-task.ts';
import { SqlTaskEnvironment } from './sql-task.ts';
import { TerminalEnvironment } from './terminal.ts';
import { TextEnvironment } from './text.ts';

const FACTORIES: ReadonlyMap<string, EnvironmentFactory> = new Map<string, EnvironmentFactory>([
  ['guess', (config, context) => new GuessEnvironment(config, context)],
  ['sql-task', (config, context) => new SqlTaskEnvironment(config, context)],
  ['command', (config, context) => new CommandEnvironment(config, context)],
  ['http-task', (config, context) => new HttpTaskEnvironment(config, context)],
  ['code-task', (config, context) => new CodeTaskEnvironment(config, context)],
  ['terminal', (config, context) => new TerminalEnvironment(config, context)],
  ['text', (config, context) => new TextEnvironment(config, context)],
]);

/** Builds environment `name` from a resolved config. Throws FarmError (exit 2) for a name that there is not. */
export function makeEnvironment(name: string, config: ValueMap, context: EnvironmentContext): Environment {
  const factory = FACTORIES.get(name);
  if (!factory) {
    throw inputError(
      'environment_unknown',
      `there is no environment ${JSON.stringify(name)}`,
      `known: ${[...FACTORIES.keys()].join(', ')}`,
    );
  }
  return factory(config, context);
}
