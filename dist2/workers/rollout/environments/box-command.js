// Running an action's command in the box and reading the result as Python's `subprocess.run(text=True)` reports it:
// decoded strictly, line ends folded, exit −N for a signal, −1 with a message for a timeout or a failed launch.
import { EnvironmentError } from '../../../shared/environment.js';
import { floatRepr } from '../../../shared/json/json.js';
import { mapOf } from '../../../shared/json/value.js';
import { pyDecodeText, wholeCharacters } from '../../../shared/python/utf8.js';
import { launchMessage } from './argv.js';
/** The smaller of the sandbox's bound and the task's own timeout in seconds. */
export function stepLimit(context, seconds = null) {
    const own = typeof seconds === 'bigint' || typeof seconds === 'number' ? Number(seconds) * 1000 : Infinity;
    if (own <= context.stepTimeoutMs) {
        return { ms: own, text: typeof seconds === 'bigint' ? String(seconds) : floatRepr(seconds) };
    }
    return { ms: context.stepTimeoutMs, text: String(context.stepTimeoutMs / 1000) };
}
export function observed(seen) {
    return mapOf({ stdout: seen.stdout, stderr: seen.stderr, exit_code: BigInt(seen.exitCode) });
}
export function launchFailure(error) {
    return { stdout: '', stderr: `launch error: ${error}`, exitCode: -1, stdoutCut: false, diagnostics: [] };
}
export async function runSeen(box, argv, limit, context) {
    const result = await box.run({
        argv,
        timeoutMs: limit.ms,
        outputBytes: context.outputBytes,
        signal: context.signal,
    });
    return seenOf(result, argv[0], limit);
}
function seenOf(result, program, limit) {
    const diagnostics = diagnosticsOf(result);
    if (result.cause === 'timeout') {
        return { stdout: '', stderr: `timed out after ${limit.text}s`, exitCode: -1, stdoutCut: false, diagnostics };
    }
    if (result.cause === 'launch') {
        return { ...launchFailure(launchMessage(result.launchError, program)), diagnostics };
    }
    const stdoutCut = result.stdoutBytes > result.stdout.length;
    const stderrCut = result.stderrBytes > result.stderr.length;
    const stdout = pyDecodeText(stdoutCut ? wholeCharacters(result.stdout) : result.stdout);
    if (!stdout.ok)
        return { ...launchFailure(stdout.error), diagnostics };
    const stderr = pyDecodeText(stderrCut ? wholeCharacters(result.stderr) : result.stderr);
    if (!stderr.ok)
        return { ...launchFailure(stderr.error), diagnostics };
    return { stdout: stdout.text, stderr: stderr.text, exitCode: result.exitCode, stdoutCut, diagnostics };
}
/** What befell a command, in the order in which it can have happened. */
export function diagnosticsOf(result) {
    const found = [];
    if (result.pidsExceeded)
        found.push('pids');
    if (result.stdoutBytes > result.stdout.length || result.stderrBytes > result.stderr.length)
        found.push('output');
    if (result.diskFull)
        found.push('disk');
    if (result.oomKilled)
        found.push('memory');
    if (result.cause === 'signal')
        found.push('signal');
    if (result.cause === 'timeout')
        found.push('timeout');
    return found;
}
/** Lays the task's own files into the box: where that fails, the task is at fault, not the action. */
export async function layTaskFiles(box, files) {
    const written = await box.write(files);
    if (!written.ok)
        throw new EnvironmentError(`the task's file ${written.path} cannot be written: ${written.message}`);
}
