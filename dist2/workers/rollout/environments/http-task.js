// `http-task`: find the right request against a recorded service. crucible's environment: the recording is data, an
// unknown request gets `not_found`, and the body that equals `expected_body` solves it.
import { parseJson } from '../../../shared/json/json.js';
import { compareCodePoints, isMap, mapOf, pyEqual } from '../../../shared/json/value.js';
import { str, typeName } from '../../../shared/python/text.js';
import { fencedText } from './fenced-block.js';
import { lostBoxStep, missedStep } from './missed-step.js';
import { attemptDigest } from './state-digest.js';
const MISS = -0.1;
export class HttpTaskEnvironment {
    name = 'http-task';
    grade = 'outside';
    settings;
    recording;
    solved = false;
    attempts = 0n;
    constructor(config, _context) {
        this.settings = config;
        this.recording = config.get('recording');
    }
    async reset(_seed) {
        this.solved = false;
        this.attempts = 0n;
        return mapOf({ task: this.setting('task'), endpoints: [...this.recording.keys()].sort(compareCodePoints) });
    }
    async step(action) {
        this.attempts += 1n;
        if (!isMap(action)) {
            const error = `'${typeName(action)}' object has no attribute 'get'`;
            return missedStep(MISS, error, { info: { attempts: this.attempts } });
        }
        const method = str(action.get('method') ?? (action.has('method') ? null : 'GET')).toUpperCase();
        const path = str(action.get('path') ?? (action.has('path') ? null : '/'));
        const response = this.recording.get(`${method} ${path}`) ?? this.setting('not_found');
        const body = isMap(response) ? (response.get('body') ?? null) : null;
        this.solved = pyEqual(body, this.setting('expected_body'));
        return {
            observation: mapOf({ response }),
            reward: this.solved ? 1 : MISS,
            done: this.solved,
            info: mapOf({ correct: this.solved, attempts: this.attempts }),
            diagnostics: [],
        };
    }
    lostBox(lost) {
        return lostBoxStep(MISS, lost, { attempts: this.attempts });
    }
    digest() {
        return attemptDigest(this.setting('task'), this.solved, this.attempts);
    }
    config() {
        return this.settings;
    }
    /** A JSON object, or a first line such as `GET /path`. */
    parseCompletion(text) {
        const block = fencedText(text);
        try {
            const value = parseJson(block);
            if (isMap(value))
                return value;
        }
        catch {
            // no JSON: perhaps a request line
        }
        const line = /^\s*([A-Za-z]+)[ \t]+(\S+)/.exec(block.slice(0, 64 * 1024));
        return line ? mapOf({ method: line[1], path: line[2] }) : block;
    }
    setting(name) {
        return this.settings.get(name) ?? null;
    }
}
