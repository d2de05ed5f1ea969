// Logs go to stderr: lines for people on a terminal, JSON (pino) otherwise. One wide line per attempt says what was
// done, for whom and how long it took; secrets that are set in the environment never stand in any of it.
import { pino } from 'pino';
import { knownSecrets } from './config.js';
const HIDDEN = '[redacted]';
/** Text without the secrets of this process's environment. */
export function redactText(text, secrets = knownSecrets()) {
    let out = text;
    for (const secret of secrets)
        out = out.replaceAll(secret, HIDDEN);
    return out;
}
/** A level that pino does not know is `info`. */
export function openLog(config, role, standard = 'info', lines = (text) => process.stderr.write(text)) {
    const secrets = knownSecrets();
    const people = process.stderr.isTTY === true;
    const stream = {
        write: (line) => {
            const safe = redactText(line, secrets);
            lines(people ? forPeople(safe) : safe);
        },
    };
    return pino({
        level: levelOf(config.logLevel ?? standard),
        base: { role, pid: process.pid },
        timestamp: pino.stdTimeFunctions.isoTime,
    }, stream);
}
const LEVELS = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' };
function levelOf(name) {
    return name === 'silent' || Object.values(LEVELS).includes(name) ? name : 'info';
}
/** `12:03:04 info rollout  member accepted run=… group=3` */
export function forPeople(line) {
    try {
        const { level, time, role, pid: _pid, msg, ...rest } = JSON.parse(line);
        const fields = Object.entries(rest).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
        return `${String(time).slice(11, 19)} ${LEVELS[level] ?? level} ${role}  ${msg ?? ''} ${fields.join(' ')}\n`;
    }
    catch {
        return line;
    }
}
