// A pattern of a config on a text that the policy chose, matched in a thread of its own: nothing ends a match that
// runs away but the engine's watchdog, and meanwhile nothing else in its thread moves. One thread for the process,
// one match at a time; it does not keep the process alive.
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';
/** The watchdog answers long before this; a thread that does not is ended, and no completion is to blame. */
const GRACE_MS = 5_000;
const MEMORY_MB = 256;
const SCRIPT = `(() => {
  if (all) return Array.from(text.matchAll(expression), (match) => Array.from(match));
  const match = expression.exec(text);
  return match ? [Array.from(match)] : [];
})()`;
// An expression compiles at its first use, which is long and no completion's doing: before the clock runs.
const THREAD = `
const vm = require('node:vm');
const { parentPort } = require('node:worker_threads');
const script = new vm.Script(${JSON.stringify(SCRIPT)});
const expressions = new Map();
parentPort.on('message', ({ source, flags, text, all, limitMs }) => {
  let expression = expressions.get(source + flags);
  if (!expression) {
    if (expressions.size >= 64) expressions.clear();
    expression = new RegExp(source, flags);
    expressions.set(source + flags, expression);
    expression.exec('');
  }
  expression.lastIndex = 0;
  let matches = null;
  try {
    matches = script.runInContext(vm.createContext({ expression, text, all }), { timeout: limitMs });
  } catch (error) {
    if (error.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT' && error.name !== 'RangeError') throw error;
  }
  parentPort.postMessage(matches);
});`;
let thread;
let line = Promise.resolve();
export function matchInThread(request) {
    const mine = line.then(() => matchNow(request));
    line = mine.catch(() => { });
    return mine;
}
/** In this thread, for tools that compare one text after the other and have no deadlines to keep. */
export function matchHere({ source, flags, text, all, limitMs }) {
    const expression = new RegExp(source, flags);
    try {
        return vm.runInNewContext(SCRIPT, { expression, text, all }, { timeout: limitMs });
    }
    catch (error) {
        // Made in the context's own realm, where it is no `Error` of ours.
        const { code, name } = error;
        if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' || name === 'RangeError')
            return null;
        throw error;
    }
}
function matchNow(request) {
    return new Promise((resolve, reject) => {
        thread ??= new Worker(THREAD, { eval: true, env: {}, resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB } });
        const worker = thread;
        const done = () => {
            clearTimeout(timer);
            worker.off('message', onMessage).off('error', onError);
            worker.unref();
        };
        const lost = () => {
            done();
            thread = undefined;
            worker.on('error', () => { });
            void worker.terminate();
        };
        const onMessage = (matches) => {
            done();
            resolve(matches);
        };
        const onError = (error) => {
            lost();
            // A text whose matches do not fit the memory is the completion's doing; all else is not.
            if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
                resolve(null);
            else
                reject(error);
        };
        const timer = setTimeout(() => {
            lost();
            reject(new Error('the matching thread does not answer'));
        }, request.limitMs + GRACE_MS);
        worker.ref();
        worker.on('message', onMessage).on('error', onError);
        worker.postMessage(request);
    });
}
