// `/v1/runs` over HTTP: the bytes and answers around the run desk.
import { sha256 } from '../shared/claim.js';
import { Joins } from './joins.js';
import { HttpProblem } from './problem.js';
const JOINING = { keepMs: 600_000, keepCount: 1_000, keepBytes: 8 * 1024 * 1024, lingerMs: 600_000 };
export class RunsCall {
    desk;
    figures;
    bodies;
    joins = new Joins(JOINING, (answer) => answer.body.length);
    constructor(parts) {
        this.desk = parts.desk;
        this.figures = parts.figures;
        this.bodies = parts.bodies;
    }
    async submit(exchange) {
        await this.bodies.with(exchange.request, exchange.gone, async (bytes) => {
            const work = async () => {
                const { status, created } = await this.desk.submit(bytes, exchange.query.get('run_id'));
                return { status: created ? 201 : 200, body: `${JSON.stringify(status)}\n` };
            };
            const key = exchange.header('idempotency-key');
            // Once begun, a submission is finished: half a run would help nobody.
            const joined = key === null ? { value: await work() } : await this.joins.join(key, sha256(bytes), exchange.gone, work);
            if (joined === null)
                throw new HttpProblem(422, 'idempotency_mismatch', 'this Idempotency-Key was used for another spec', 'draw a new key for each run');
            exchange.json(joined.value.status, joined.value.body);
        });
    }
    async list(exchange) {
        const figures = await this.figures.read();
        if (figures.missing !== null)
            throw new HttpProblem(503, 'redis_unreachable', figures.missing, undefined, { 'retry-after': '2' });
        exchange.json(200, `${JSON.stringify({ runs: figures.runs })}\n`);
    }
    async status(exchange, run) {
        exchange.json(200, `${JSON.stringify(await this.desk.status(run))}\n`);
    }
    async cancel(exchange, run) {
        exchange.json(200, `${JSON.stringify(await this.desk.cancel(run))}\n`);
    }
}
