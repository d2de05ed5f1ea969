// `guess`: find a secret integer that the seed fixes. crucible's environment: `int(action)` is the guess, a right one
// ends the episode, and so does the last that is allowed.
import { mapOf } from '../../../shared/json/value.js';
import { pyInt } from '../../../shared/python/int.js';
import { PyRandom } from '../../../shared/python/random.js';
import { fencedText } from './fenced-block.js';
import { lostBoxStep, missedStep } from './missed-step.js';
import { stateDigest } from './state-digest.js';
const MISS = -0.05;
export class GuessEnvironment {
    name = 'guess';
    grade = 'outside';
    settings;
    low;
    high;
    maxGuesses;
    secret = 0n;
    guesses = 0n;
    last = null;
    constructor(config, _context) {
        this.settings = config;
        const bound = (name) => BigInt(config.get(name));
        this.low = bound('low');
        this.high = bound('high');
        this.maxGuesses = bound('max_guesses');
    }
    async reset(seed) {
        this.secret = new PyRandom(seed).randint(this.low, this.high);
        this.guesses = 0n;
        this.last = null;
        return this.hint('start');
    }
    async step(action) {
        const read = pyInt(action);
        if (!read.ok)
            return missedStep(MISS, read.error, { info: { guesses: this.guesses } });
        const guess = read.value;
        this.guesses += 1n;
        this.last = guess;
        if (guess === this.secret) {
            return {
                observation: mapOf({ feedback: 'correct' }),
                reward: 1,
                done: true,
                info: mapOf({ secret: this.secret, guesses: this.guesses }),
                diagnostics: [],
            };
        }
        return {
            observation: this.hint(guess < this.secret ? 'higher' : 'lower'),
            reward: MISS,
            done: this.guesses >= this.maxGuesses,
            info: mapOf({ guesses: this.guesses }),
            diagnostics: [],
        };
    }
    lostBox(lost) {
        return lostBoxStep(MISS, lost);
    }
    digest() {
        return stateDigest(`${this.secret}:${this.guesses}:${this.last ?? 'None'}`);
    }
    config() {
        return this.settings;
    }
    parseCompletion(text) {
        return fencedText(text);
    }
    hint(feedback) {
        // As they were given: 1.0 stays 1.0.
        const [low, high] = [this.settings.get('low') ?? null, this.settings.get('high') ?? null];
        return mapOf({ feedback, low, high });
    }
}
