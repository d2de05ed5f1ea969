#!/usr/bin/env node
// The `farm` command as a process. Data goes to stdout, everything else to stderr; a failure that a user can mend is one
// line with its next step, never a stack trace.

import { CommanderError } from 'commander';
import { readConfig } from '../shared/config.ts';
import { EXIT, FarmError, messageOf } from '../shared/errors.ts';
import { redactText } from '../shared/log.ts';
import { program } from './commands.ts';

async function main(): Promise<number> {
  let exit: number = EXIT.ok;
  try {
    await program((code) => {
      exit = code;
    }).parseAsync(process.argv);
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.input;
    if (error instanceof FarmError) {
      process.stderr.write(redactText(`farm: ${error.message}${error.hint ? `\n      ${error.hint}` : ''}\n`));
      return error.exit;
    }
    process.stderr.write(redactText(`farm: this should not have happened: ${messageOf(error)}\n`));
    if (readConfig().logLevel === 'debug' && error instanceof Error)
      process.stderr.write(redactText(`${error.stack}\n`));
    return EXIT.unsound;
  }
}

// A reader that goes away (| head) ends the command quietly.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`farm: stdout cannot be written: ${error.message}\n`);
  process.exit(EXIT.missing);
});
process.exitCode = await main();
await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
process.exit();
