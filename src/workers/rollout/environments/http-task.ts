// `http-task`: find the right request against a recorded service. crucible's environment: the recording is data, an
// unknown request gets `not_found`, and the body that equals `expected_body` solves it.

import type { Environment, EnvironmentContext, StepResult } from '../../../shared/environment.ts';
import { parseJson } from '../../../shared/json/json.ts';
import { compareCodePoints, isMap, mapOf, pyEqual, type Value, type ValueMap } from '../../../shared/json/value.ts';
import { str, typeName } from '../../../shared/python/text.ts';
import type { BoxLost } from '../../../shared/sandbox.ts';
import { fencedText } from './fenced-block.ts';
import { lostBoxStep, missedStep } from './missed-step.ts';
import { attemptDigest } from './state-digest.ts';

const MISS = -0.1;

export class HttpTaskEnvironment implements Environment {
  readonly name = 'http-task';
  readonly grade = 'outside';
  private readonly settings: ValueMap;
  private readonly recording: ValueMap;
  private solved = false;
  private attempts = 0n;

  constructor(config: ValueMap, _context?: EnvironmentContext) {
    this.settings = config;
    this.recording = config.get('recording') as ValueMap;
  }

  async reset(_seed: Value): Promise<Value> {
    this.solved = false;
    this.attempts = 0n;
    return mapOf({ task: this.setting('task'), endpoints: [...this.recording.keys()].sort(compareCodePoints) });
  }

  async step(action: Value): Promise<StepResult> {
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

  lostBox(lost: BoxLost): StepResult {
    return lostBoxStep(MISS, lost, { attempts: this.attempts });
  }

  digest(): string {
    return attemptDigest(this.setting('task'), this.solved, this.attempts);
  }

  config(): ValueMap {
    return this.settings;
  }

  /** A JSON object, or a first line such as `GET /path`. */
  parseCompletion(text: string): Value {
    const block = fencedText(text);
    try {
      const value = parseJson(block);
      if (isMap(value)) return value;
    } catch {
      // no JSON: perhaps a request line
    }
    const line = /^\s*([A-Za-z]+)[ \t]+(\S+)/.exec(block.slice(0, 64 * 1024));
    return line ? mapOf({ method: line[1] as string, path: line[2] as string }) : block;
  }

  private setting(name: string): Value {
    return this.settings.get(name) ?? null;
  }
}
