// `text`: the completion itself is what counts, and the verifier judges it. One step, no sandbox, no reward of its own.
import { lostBoxStep } from './missed-step.js';
export class TextEnvironment {
    name = 'text';
    grade = 'verifier';
    settings;
    constructor(config, _context) {
        this.settings = config;
    }
    async reset(_seed) {
        return new Map();
    }
    async step(_action) {
        return { observation: new Map(), reward: 0, done: true, info: new Map(), diagnostics: [] };
    }
    lostBox(lost) {
        return lostBoxStep(0, lost);
    }
    digest() {
        return '';
    }
    config() {
        return this.settings;
    }
    parseCompletion(text) {
        return text;
    }
}
