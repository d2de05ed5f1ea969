// The farm's command line, called as a user calls it, with a deadline of ours.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const MOST_BYTES = 256 * 1024 * 1024;
export function farm(environment, withinMs, ...args) {
    return new Promise((resolve) => {
        const options = { env: environment, timeout: withinMs, killSignal: 'SIGKILL', maxBuffer: MOST_BYTES };
        execFile(process.execPath, [MAIN, ...args], options, (error, out, err) => {
            const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
            resolve({ code, out, err });
        });
    });
}
