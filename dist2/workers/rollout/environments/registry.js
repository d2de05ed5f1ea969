// The seven environments by name, each built from a config that was checked and resolved. Only names that
// `environment-config.ts` knows stand here, and every one of them does.
import { inputError } from '../../../shared/errors.js';
import { CodeTaskEnvironment } from './code-task.js';
import { CommandEnvironment } from './command.js';
import { GuessEnvironment } from './guess.js';
import { HttpTaskEnvironment } from './http-task.js';
import { SqlTaskEnvironment } from './sql-task.js';
import { TerminalEnvironment } from './terminal.js';
import { TextEnvironment } from './text.js';
const FACTORIES = new Map([
    ['guess', (config, context) => new GuessEnvironment(config, context)],
    ['sql-task', (config, context) => new SqlTaskEnvironment(config, context)],
    ['command', (config, context) => new CommandEnvironment(config, context)],
    ['http-task', (config, context) => new HttpTaskEnvironment(config, context)],
    ['code-task', (config, context) => new CodeTaskEnvironment(config, context)],
    ['terminal', (config, context) => new TerminalEnvironment(config, context)],
    ['text', (config, context) => new TextEnvironment(config, context)],
]);
/** Builds environment `name` from a resolved config. Throws FarmError (exit 2) for a name that there is not. */
export function makeEnvironment(name, config, context) {
    const factory = FACTORIES.get(name);
    if (!factory) {
        throw inputError('environment_unknown', `there is no environment ${JSON.stringify(name)}`, `known: ${[...FACTORIES.keys()].join(', ')}`);
    }
    return factory(config, context);
}
