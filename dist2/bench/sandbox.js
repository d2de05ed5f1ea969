// `farm bench sandbox`: what a sandboxed step, grade and episode cost, beside a container per grade (crucible's pattern), an
// exec per step and no sandbox at all, in the same rounds on the same machine.
import { readConfig } from '../shared/config.js';
import { isKnownDead, processIdentity } from '../shared/process-identity.js';
import { DEFAULT_LIMITS } from '../shared/sandbox.js';
import { SQL_COMMAND } from '../workers/rollout/environments/sql-task.js';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.js';
import { createOwnPool, ownWorker } from '../workers/rollout/sandbox/own-pool.js';
import { latencyOf } from './percentile.js';
import { dockerExecArm, dockerRunArm, freshArm, openBoxArm, outsideArm, recycledArm, removeBenchContainers, subprocessArm, } from './sandbox-arms.js';
import { rowOf, stretch, tallyOf } from './sandbox-cells.js';
import { goalsOf } from './sandbox-goals.js';
import { manyGrades } from './sandbox-grades.js';
import { neighbours, stepCost } from './sandbox-steps.js';
import { GUESS, gradeWork, HTTP, STEPS, sqlWork, terminalWork } from './sandbox-work.js';
const SHORT = { rounds: 3, sliceMs: 300, steps: 300, neighbourRounds: 2 };
const FULL = { rounds: 7, sliceMs: 2_000, steps: 2_000, neighbourRounds: 7 };
const FULL_WIDTHS = [1, 2, 4, 8];
const EPISODE_STEPS = 50;
export async function benchSandbox(options) {
    const id = processIdentity();
    await removeBenchContainers(isKnownDead);
    const engine = createDockerDriver({ dockerHost: readConfig().dockerHost });
    const driver = createOwnPool(engine, 'command');
    const worker = ownWorker('command');
    let result;
    try {
        await driver.prepare(DEFAULT_LIMITS.image);
        result = await measured(options, driver, worker, id);
    }
    finally {
        await driver.close();
        await removeBenchContainers((other) => other === id || isKnownDead(other));
    }
    // whatever is still there of ours now would have been left
    return { ...result, containers_left: await engine.sweep('command', (other) => other !== worker) };
}
async function measured(options, driver, worker, id) {
    const labels = { farm: 'command', worker };
    const fresh = { driver, limits: { ...DEFAULT_LIMITS }, labels, opened: [] };
    const recycled = { ...fresh, limits: { ...DEFAULT_LIMITS, recycle: 'bench' }, opened: [] };
    const notes = [];
    const result = {
        rounds: 0,
        rows: [],
        open_ms: null,
        step: null,
        neighbours: [],
        goals: [],
        notes,
        containers_left: 0,
    };
    if (options.grades !== null) {
        const grades = await manyGrades(gradeWork(false, options.tasks), recycled, options.grades, orderOf(options.seed, 0), options.signal);
        return { ...result, grades };
    }
    const scale = options.full ? FULL : SHORT;
    const bare = options.tasks === null || options.trusted ? [subprocessArm()] : [];
    if (bare.length === 0)
        notes.push('no bare subprocess beside the grades: completions of others run in sandboxes only (--trusted, if they are harmless)');
    const tallies = cellsOf(options, { fresh, recycled, bare, id }).map(tallyOf);
    await rounds(tallies, scale, options);
    const step = await stepCost(recycled, scale.steps);
    const beside = [];
    for (const hogs of [1, 2])
        beside.push(await neighbours(fresh, hogs, scale.neighbourRounds, 30));
    const rows = tallies.map(rowOf);
    const open = { fresh: latencyOf(fresh.opened), recycled: latencyOf(recycled.opened) };
    const goals = goalsOf(rows, open.recycled, step, beside);
    return { ...result, rounds: scale.rounds, rows, open_ms: open, step, neighbours: beside, grades: null, goals };
}
async function rounds(tallies, scale, { seed, signal }) {
    for (let round = -1; round < scale.rounds; round++) {
        const order = orderOf(seed, round);
        for (const [i, tally] of tallies.entries()) {
            signal.throwIfAborted();
            process.stderr.write(`\rbench: round ${Math.max(0, round + 1)} of ${scale.rounds}, ${i + 1} of ${tallies.length}  `);
            // the first round only warms up, which a cell's wider ones need no more
            if (round < 0 && tally.cell.width > 1)
                continue;
            await stretch(tally, order, round < 0 ? 0 : scale.sliceMs, round >= 0);
        }
    }
    process.stderr.write('\n');
}
function cellsOf(options, arms) {
    const { fresh, recycled, id } = arms;
    const cells = [];
    const add = (work, list, widths = work.widths) => {
        for (const width of options.full ? FULL_WIDTHS : widths)
            for (const arm of list)
                cells.push({ work, arm, width });
    };
    const run = dockerRunArm(fresh.limits, id);
    const exec = dockerExecArm(fresh.limits, id);
    const ours = [freshArm(fresh), recycledArm('ours, recycled', recycled)];
    for (const work of STEPS)
        add(work, [run, exec, openBoxArm('ours, in an open box', recycled), subprocessArm()]);
    add(gradeWork(false, options.tasks), [run, ...ours, ...arms.bare]);
    add(gradeWork(false, options.tasks), [exec], [1, 2]);
    add({ ...gradeWork(true, options.tasks), name: gradeWork(false, options.tasks).name }, [
        recycledArm('ours, recycled, warm', recycled),
    ]);
    add(sqlWork(SQL_COMMAND), [run, exec, ...ours, subprocessArm()]);
    const terminal = terminalWork(EPISODE_STEPS);
    add(terminal, [...(options.full ? [run] : []), exec, ...ours, subprocessArm()]);
    for (const work of [GUESS, HTTP])
        add(work, [outsideArm(fresh.limits)]);
    return cells;
}
/** Which item comes when: drawn by the seed, another order in every round, the same for every arm. */
function orderOf(seed, round) {
    const order = Array.from({ length: 10_000 }, (_, i) => i);
    let state = Number(BigInt.asUintN(32, seed * 2654435761n + BigInt(round + 7)));
    for (let i = order.length - 1; i > 0; i--) {
        state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0;
        const j = state % (i + 1);
        [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
}
