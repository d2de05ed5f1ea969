// A run spec that came over the network: everything stands in it, and nothing in it names a file, a store or a verifier
// of the sender's choice. So that the one reader of specs reads it too, it is written to a private folder for as long as
// that takes; completions given inline become the file that the spec format wants.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { dumpJson } from '../shared/json/json.js';
import { isMap } from '../shared/json/value.js';
import { printProblems, show } from '../shared/spec/problem.js';
import { readSpec } from '../shared/spec/reader.js';
import { readYaml, YamlError } from '../shared/spec/yaml.js';
import { decodeJsonBytes } from './mapping/json-bytes.js';
import { HttpProblem } from './problem.js';
/** YAML that is not JSON is read slowly: more of it would hold up everybody else. */
const MAX_YAML_BYTES = 1024 * 1024;
/** `baseUrls`: the verifiers that a spec may name, because our key may go there. Throws HttpProblem (400). */
export async function readSubmitted(bytes, machine, baseUrls) {
    const { spec, runId } = unwrap(readText(bytes));
    refuseReach(spec, machine, baseUrls);
    const folder = await mkdtemp(path.join(tmpdir(), 'farm-spec-'));
    try {
        const whole = await inlineCompletions(spec, folder);
        const file = path.join(folder, 'spec.json');
        await writeFile(file, dumpJson(whole, { compact: true }), { mode: 0o600 });
        const read = await readSpec(file, machine);
        if (!read.ok) {
            const text = printProblems(read.problems).replaceAll(`${folder}${path.sep}`, '');
            throw new HttpProblem(400, 'spec_invalid', text, './farm check FILE says the same before it is sent');
        }
        if (read.kind !== 'run')
            throw fault('this configures a verifier, and no run: it has no tasks');
        return { ...read, runId };
    }
    finally {
        await rm(folder, { recursive: true, force: true });
    }
}
function readText(bytes) {
    const text = decodeJsonBytes(bytes);
    if (text === null)
        throw new HttpProblem(400, 'not_utf8', 'the body is not UTF-8 text');
    if (bytes.length > MAX_YAML_BYTES && !/^\s*\{/.test(text))
        throw new HttpProblem(413, 'yaml_too_large', 'a spec of more than 1 MB is taken as JSON only', 'send it as JSON');
    try {
        const { value } = readYaml(text, 'spec');
        if (isMap(value))
            return value;
        throw fault(`a spec is an object with keys, given ${show(value)}`);
    }
    catch (error) {
        if (!(error instanceof YamlError))
            throw error;
        throw fault(`spec:${error.line}: ${error.message}`);
    }
}
/** The spec itself, or `{"run_id", "spec"}` with the spec as an object or as text. */
function unwrap(body) {
    if (!body.has('spec'))
        return { spec: new Map(body), runId: null };
    for (const key of body.keys())
        if (key !== 'spec' && key !== 'run_id')
            throw fault(`${JSON.stringify(key.slice(0, 60))} is no field beside spec; allowed: spec, run_id`);
    const given = body.get('spec');
    const spec = typeof given === 'string' ? readText(Buffer.from(given)) : given;
    if (!isMap(spec))
        throw fault(`spec: must be an object or its text, given ${show(given)}`);
    const runId = body.get('run_id') ?? null;
    if (runId !== null && typeof runId !== 'string')
        throw fault(`run_id: must be a text, given ${show(runId)}`);
    return { spec: new Map(spec), runId };
}
function refuseReach(spec, machine, baseUrls) {
    if (typeof spec.get('tasks') === 'string')
        throw fault('tasks: a path is refused from the network; put the tasks into the spec as a list');
    const policy = spec.get('policy');
    if (isMap(policy) && policy.has('path'))
        throw fault('policy.path: a path is refused from the network; put the lines into the spec as policy.completions, a list');
    const store = spec.get('store');
    if (store !== undefined && store !== machine.store)
        throw fault('store: the store is the gateway’s own; leave it out');
    const domain = spec.get('domain');
    const url = isMap(domain) ? domain.get('base_url') : undefined;
    if (url !== undefined && !(typeof url === 'string' && baseUrls.includes(url.replace(/\/+$/, ''))))
        throw fault('domain.base_url: the gateway sends its key to its own verifiers only; leave it out');
}
async function inlineCompletions(spec, folder) {
    const policy = spec.get('policy');
    if (!isMap(policy) || !policy.has('completions'))
        return spec;
    const lines = policy.get('completions');
    if (!Array.isArray(lines))
        throw fault(`policy.completions: must be a list of objects with task_id, given ${show(lines)}`);
    await writeFile(path.join(folder, 'policy.completions'), lines.map((line) => `${dumpJson(line, { compact: true })}\n`).join(''), { mode: 0o600 });
    const given = new Map(policy);
    given.delete('completions');
    given.set('path', 'policy.completions');
    return new Map(spec).set('policy', given);
}
function fault(message) {
    return new HttpProblem(400, 'spec_invalid', message);
}
