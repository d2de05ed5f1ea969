// The ledger's Lua scripts, each called on the keys of one run.
import { loadScript } from '../redis/script.js';
const FOLDER = new URL('.', import.meta.url);
/** Redis keys of one run share a hash slot: `{run}` is the hash tag. */
export function runKey(run) {
    return `farm:{${run}}`;
}
export function defineScript(name, options) {
    const script = loadScript(FOLDER, name, options);
    return {
        call: (redis, run, args) => script.call(redis, runKey(run), args),
        callBuffer: (redis, run, args) => script.callBuffer(redis, runKey(run), args),
    };
}
