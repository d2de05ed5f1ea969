// Who holds which member, as the ledger has it: read from outside, without changing anything.
import { runKey } from '../../shared/ledger/script.js';
export async function heldBy(redis, run, whose) {
    const key = runKey(run);
    const ids = await redis.zrange(`${key}:flight`, '0', '-1');
    const held = await Promise.all(ids.map(async (id) => {
        const [group, member] = id.split('-');
        const [worker, token] = await redis.hmget(`${key}:g:${group}`, `${member}.w`, `${member}.t`);
        return worker && token ? { id, worker, token } : null;
    }));
    return held.filter((h) => h !== null).filter((h) => whose(h.worker));
}
