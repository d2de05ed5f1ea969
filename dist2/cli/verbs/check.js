// `farm check FILE`: reads a run spec, or a config with a verifier's sections alone, with every file that it names,
// and prints what it means with all defaults filled in. Starts nothing.
import { readConfig } from '../../shared/config.js';
import { EXIT } from '../../shared/errors.js';
import { dumpJson } from '../../shared/json/json.js';
import { MAX_PROBLEMS, printProblems } from '../../shared/spec/problem.js';
import { readSpec } from '../../shared/spec/reader.js';
export async function check(args) {
    const result = await readSpec(args.file, readConfig());
    if (!result.ok) {
        process.stderr.write(`${printProblems(result.problems, MAX_PROBLEMS)}\n`);
        return EXIT.input;
    }
    for (const warning of result.warnings)
        process.stderr.write(`warning: ${warning}\n`);
    const resolved = result.kind === 'run' ? new Map(result.spec.document) : result.document;
    // Not part of what the run is, but of where it goes.
    if (result.kind === 'run')
        resolved.set('store', result.spec.store);
    process.stdout.write(`${dumpJson(resolved, { indent: 2 })}\n`);
    return EXIT.ok;
}
