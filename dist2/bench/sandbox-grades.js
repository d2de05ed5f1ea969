// Ten thousand grades: does the worker's memory stay, and is every grade right.
import { recycledArm } from './sandbox-arms.js';
const WIDTH = 2;
/** Before the first look: what is loaded once is no growth. */
const WARM_UP = 200;
const WRONG_KEPT = 50;
export async function manyGrades(work, boxes, count, order, signal) {
    const arm = recycledArm('', boxes);
    const wrong = [];
    const looks = [];
    let done = 0;
    let asked = 0;
    const loop = async (until) => {
        const slot = await arm.slot(work.items[0]);
        await slot.ready?.();
        while (asked < until && !signal.aborted) {
            const at = asked++;
            const item = work.items[(order[at % order.length] ?? 0) % work.items.length];
            if (!(await slot.play(item)) && wrong.length < WRONG_KEPT)
                wrong.push(item.id);
            done += 1;
            if (done % 100 === 0) {
                looks.push(rssMb());
                process.stderr.write(`\rbench: ${done} grades  `);
            }
        }
        await slot.close();
    };
    const lanes = (until) => Promise.all(Array.from({ length: WIDTH }, () => loop(until)));
    await lanes(Math.min(WARM_UP, count));
    const start = rssMb();
    looks.length = 0;
    const began = performance.now();
    await lanes(count + Math.min(WARM_UP, count));
    signal.throwIfAborted();
    const seconds = (performance.now() - began) / 1000;
    process.stderr.write('\n');
    const end = rssMb();
    return {
        count,
        width: WIDTH,
        seconds,
        per_s: count / seconds,
        wrong,
        rss_mb: { start, middle: looks[looks.length >> 1] ?? start, end, peak: Math.max(start, end, ...looks) },
    };
}
function rssMb() {
    return Math.round(process.memoryUsage.rss() / 1e5) / 10;
}
