// `text`: the completion itself is what counts, and the verifier judges it. One step, no sandbox, no reward of its own.

import type { Environment, EnvironmentContext, StepResult } from '../../../shared/environment.ts';
import type { Value, ValueMap } from '../../../shared/json/value.ts';
import type { BoxLost } from '../../../shared/sandbox.ts';
import { lostBoxStep } from './missed-step.ts';

export class TextEnvironment implements Environment {
  readonly name = 'text';
  readonly grade = 'verifier';
  private readonly settings: ValueMap;

  constructor(config: ValueMap, _context?: EnvironmentContext) {
    this.settings = config;
  }

  async reset(_seed: Value): Promise<Value> {
    return new Map();
  }

  async step(_action: Value): Promise<StepResult> {
    return { observation: new Map(), reward: 0, done: true, info: new Map(), diagnostics: [] };
  }

  lostBox(lost: BoxLost): StepResult {
    return lostBoxStep(0, lost);
  }

  digest(): string {
    return '';
  }

  config(): ValueMap {
    return this.settings;
  }

  parseCompletion(text: string): Value {
    return text;
  }
}
