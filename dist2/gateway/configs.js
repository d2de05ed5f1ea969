// The configs that the gateway scores with, by name; the first is the default one. Read once, before anything is bound:
// a config that is broken, or without a `domain`, ends the command.
import path from 'node:path';
import { sha256 } from '../shared/claim.js';
import { EXIT, FarmError, inputError } from '../shared/errors.js';
import { dumpJson } from '../shared/json/json.js';
import { printProblems } from '../shared/spec/problem.js';
import { readSpec } from '../shared/spec/reader.js';
import { HttpProblem } from './problem.js';
export class ScoreConfigs {
    byName;
    constructor(configs) {
        this.byName = new Map(configs.map((config) => [config.name, config]));
    }
    get all() {
        return [...this.byName.values()];
    }
    /** Throws HttpProblem for one that there is not. */
    get(name) {
        const found = name === null ? this.all[0] : this.byName.get(name);
        if (found)
            return found;
        if (name === null)
            throw new HttpProblem(400, 'no_config', 'this gateway was started without a config', 'start it with --config FILE');
        throw new HttpProblem(400, 'config_unknown', `there is no config ${JSON.stringify(name.slice(0, 100))}`, `known: ${[...this.byName.keys()].join(', ')}`);
    }
}
/** `NAME=FILE`, or `FILE` under its base name. Throws FarmError (exit 2). */
export async function readConfigs(given, machine) {
    const configs = [];
    const warnings = [];
    for (const text of given) {
        const [, name, file] = /^([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)$/s.exec(text) ?? [null, baseName(text), text];
        if (configs.some((config) => config.name === name))
            throw inputError('config_twice', `--config: the name ${name} is given twice`, 'name one of them NAME=FILE');
        const read = await readSpec(file, machine);
        if (!read.ok)
            throw new FarmError('spec_invalid', printProblems(read.problems), { exit: EXIT.input });
        const verifier = read.kind === 'run' ? read.spec.verifier : read.verifier;
        if (verifier === null)
            throw inputError('no_domain', `${file}: there is no domain, so nothing to score with`, 'add a domain section');
        const document = read.kind === 'run' ? read.spec.document : read.document;
        for (const warning of read.warnings)
            warnings.push(`${file}: ${warning}`);
        if (verifier.parser.broken !== null)
            warnings.push(`${file}: no completion can be read: ${verifier.parser.broken}`);
        configs.push({
            name: name,
            verifier,
            epoch: sha256(dumpJson(document, { sortKeys: true, compact: true })).slice(0, 32),
        });
    }
    return { configs: new ScoreConfigs(configs), warnings };
}
function baseName(file) {
    return path.basename(file).replace(/\.(?:ya?ml|json)$/i, '');
}
