// What a sandbox is measured with: single steps, and whole episodes as the farm plays them. Each item says itself what has to
// come out, for arms that know environments and for arms that know nothing but commands.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { inputError, messageOf } from '../shared/errors.js';
import { parseJson, toValue } from '../shared/json/json.js';
import { mapOf } from '../shared/json/value.js';
import { ENVIRONMENT_CONFIGS } from '../shared/spec/environment-config.js';
import { sqlInput } from '../workers/rollout/environments/sql-task.js';
import { checkOf, SAMPLES, stubOf } from './sandbox-samples.js';
const NO_FILES = new Map();
function step(argv) {
    const one = { files: NO_FILES, argv, stdin: null, timeoutMs: 10_000 };
    return { id: argv[0] ?? '', steps: [one], episode: null, passes: true };
}
function resolved(env, config) {
    const kind = ENVIRONMENT_CONFIGS.get(env);
    const problem = kind?.check(config)[0];
    if (!kind || problem)
        throw inputError('task', `${env}: ${problem ? `${problem.path} ${problem.message}` : 'unknown'}`);
    return kind.resolve(config);
}
/** One code-task with one completion, as an episode and as a folder with a command. */
function gradeItem(id, config, edits, passes, warm) {
    const check = config.get('check');
    const files = new Map();
    for (const part of [config.get('files'), edits, check.get('files')])
        for (const [name, text] of part)
            if (typeof text === 'string')
                files.set(name, text);
    const seconds = Number(check.get('timeout') ?? 10);
    const used = warm ? new Map([...config, ['check', new Map([...check, ['warm', 'python3']])]]) : config;
    return {
        id,
        steps: [{ files, argv: check.get('command'), stdin: null, timeoutMs: seconds * 1000 }],
        episode: { env: 'code-task', config: resolved('code-task', used), actions: [edits] },
        passes,
    };
}
export function gradeWork(warm, folder) {
    const items = folder === null ? sampleItems(warm) : folderItems(folder, warm);
    return { name: folder === null ? 'grade' : `grade of ${path.basename(folder)}`, items, widths: [1, 2, 4, 8] };
}
function sampleItems(warm) {
    return SAMPLES.flatMap((sample) => {
        const config = toValue({
            files: { 'solution.py': stubOf(sample.name) },
            task: `Complete ${sample.name} in solution.py.`,
            check: { command: ['python3', 'check.py'], files: { 'check.py': checkOf(sample) }, timeout: 5 },
        });
        return [
            gradeItem(`${sample.name} right`, config, mapOf({ 'solution.py': sample.right }), true, warm),
            gradeItem(`${sample.name} wrong`, config, mapOf({ 'solution.py': sample.wrong }), false, warm),
        ];
    });
}
const taskSchema = z.object({ id: z.string(), env: z.literal('code-task'), config: z.instanceof(Map) });
const completionSchema = z.object({
    task_id: z.string(),
    action: z.instanceof(Map),
    label: z.enum(['pass', 'fail', 'timeout']).optional(),
});
/** tasks.jsonl and completions.jsonl, as a run takes them; a `label` says what the grade has to be (one that runs out of time fails). */
function folderItems(folder, warm) {
    const tasks = new Map(rowsOf(folder, 'tasks.jsonl').map((row) => [taskSchema.parse(row).id, taskSchema.parse(row)]));
    return rowsOf(folder, 'completions.jsonl').map((row, i) => {
        const { task_id, action, label } = completionSchema.parse(row);
        const task = tasks.get(task_id);
        if (!task)
            throw inputError('task', `${folder}: completion ${i + 1} is of an unknown task ${task_id}`);
        const passes = label === undefined ? null : label === 'pass';
        return gradeItem(`${task_id} #${i + 1}`, task.config, action, passes, warm);
    });
}
function rowsOf(folder, name) {
    const file = path.join(folder, name);
    try {
        const lines = readFileSync(file, 'utf8').split('\n');
        return lines.filter((line) => line.trim() !== '').map((line) => Object.fromEntries(parseJson(line)));
    }
    catch (error) {
        throw inputError('tasks', `${file} cannot be used: ${messageOf(error)}`, 'a folder with tasks.jsonl and completions.jsonl');
    }
}
const SCHEMA = 'CREATE TABLE item (id INTEGER PRIMARY KEY, kind TEXT, price REAL);';
const SEED = Array.from({ length: 200 }, (_, i) => `INSERT INTO item VALUES (${i}, 'k${i % 7}', ${i}.5);`).join('\n');
const QUERY = 'SELECT kind, COUNT(*) FROM item GROUP BY kind ORDER BY kind';
/** `script`: what the environment itself runs in its box, so that every arm runs the same. */
export function sqlWork(script) {
    const rows = Array.from({ length: 7 }, (_, k) => [
        `k${k}`,
        Array.from({ length: 200 }).filter((_, i) => i % 7 === k).length,
    ]);
    const config = toValue({
        schema_sql: SCHEMA,
        seed_sql: SEED,
        task: 'Count the items of each kind.',
        expected_rows: rows,
    });
    const stdin = sqlInput([SCHEMA, SEED, QUERY]);
    const item = {
        id: 'sql',
        steps: [{ files: NO_FILES, argv: [...script], stdin, timeoutMs: 10_000 }],
        episode: { env: 'sql-task', config: resolved('sql-task', config), actions: [QUERY] },
        passes: true,
    };
    return { name: 'sql', items: [item], widths: [1, 2] };
}
export function terminalWork(steps) {
    const actions = Array.from({ length: steps }, (_, i) => i + 1 < steps ? ['sh', '-c', `echo line ${i} >> log.txt; wc -l < log.txt`] : ['sh', '-c', 'echo yes > done.txt']);
    const goal = { kind: 'file_contains', path: 'done.txt', needle: 'yes' };
    const config = toValue({ files: { 'a.txt': 'one\n' }, task: 'create done.txt', goal, timeout: 5 });
    const item = {
        id: 'terminal',
        steps: actions.map((argv) => ({ files: NO_FILES, argv, stdin: null, timeoutMs: 5_000 })),
        episode: { env: 'terminal', config: resolved('terminal', config), actions },
        passes: true,
    };
    return { name: `terminal, ${steps} steps`, items: [item], widths: [1] };
}
function outsideWork(name, env, config, actions) {
    const episode = { env, config: resolved(env, toValue(config)), actions };
    return { name, items: [{ id: name, steps: [], episode, passes: true }], widths: [1] };
}
export const GUESS = outsideWork('guess', 'guess', { low: 1, high: 4, max_guesses: 8 }, [1n, 2n, 3n, 4n]);
export const HTTP = outsideWork('http', 'http-task', {
    recording: { 'GET /a': { status: 200, body: { next: '/b' } }, 'GET /b': { status: 200, body: { ok: true } } },
    task: 'Find the body that says ok.',
    expected_body: { ok: true },
    not_found: { status: 404, body: null },
}, [mapOf({ method: 'GET', path: '/a' }), mapOf({ method: 'GET', path: '/b' })]);
export const STEPS = [
    { name: 'true', items: [step(['true'])], widths: [1] },
    {
        name: 'shell step',
        items: [step(['sh', '-c', 'i=0; while [ $i -lt 200 ]; do i=$((i+1)); done; ls / | wc -l > n; cat n'])],
        widths: [1],
    },
    { name: 'python3 -c', items: [step(['python3', '-c', 'print(sum(range(1000)))'])], widths: [1, 2] },
];
