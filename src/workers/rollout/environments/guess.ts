// `guess`: find a secret integer that the seed fixes. crucible's environment: `int(action)` is the guess, a right one
// ends the episode, and so does the last that is allowed.

import type { Environment, EnvironmentContext, StepResult } from '../../../shared/environment.ts';
import { mapOf, type Value, type ValueMap } from '../../../shared/json/value.ts';
import { pyInt } from '../../../shared/python/int.ts';
import { PyRandom } from '../../../shared/python/random.ts';
import type { BoxLost } from '../../../shared/sandbox.ts';
import { fencedText } from './fenced-block.ts';
import { lostBoxStep, missedStep } from './missed-step.ts';
import { stateDigest } from './state-digest.ts';

const MISS = -0.05;

/** The last one drawn: the members of a group have one seed, and drawing takes longer than a guess. */
let drawn: { seed: bigint; low: bigint; high: bigint; secret: bigint } | null = null;

function secretOf(seed: Value, low: bigint, high: bigint): bigint {
  if (drawn !== null && drawn.seed === seed && drawn.low === low && drawn.high === high) return drawn.secret;
  const secret = new PyRandom(seed).randint(low, high);
  if (typeof seed === 'bigint') drawn = { seed, low, high, secret };
  return secret;
}

export class GuessEnvironment implements Environment {
  readonly name = 'guess';
  readonly grade = 'outside';
  private readonly settings: ValueMap;
  private readonly low: bigint;
  private readonly high: bigint;
  private readonly maxGuesses: bigint;
  private secret = 0n;
  private guesses = 0n;
  private last: bigint | null = null;

  constructor(config: ValueMap, _context?: EnvironmentContext) {
    this.settings = config;
    const bound = (name: string): bigint => BigInt(config.get(name) as bigint | number);
    this.low = bound('low');
    this.high = bound('high');
    this.maxGuesses = bound('max_guesses');
  }

  async reset(seed: Value): Promise<Value> {
    this.secret = secretOf(seed, this.low, this.high);
    this.guesses = 0n;
    this.last = null;
    return this.hint('start');
  }

  async step(action: Value): Promise<StepResult> {
    const read = pyInt(action);
    if (!read.ok) return missedStep(MISS, read.error, { info: { guesses: this.guesses } });
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

  lostBox(lost: BoxLost): StepResult {
    return lostBoxStep(MISS, lost);
  }

  digest(): string {
    return stateDigest(`${this.secret}:${this.guesses}:${this.last ?? 'None'}`);
  }

  config(): ValueMap {
    return this.settings;
  }

  parseCompletion(text: string): Value {
    return fencedText(text);
  }

  private hint(feedback: string): Value {
    // As they were given: 1.0 stays 1.0.
    const [low, high] = [this.settings.get('low') ?? null, this.settings.get('high') ?? null];
    return mapOf({ feedback, low, high });
  }
}
