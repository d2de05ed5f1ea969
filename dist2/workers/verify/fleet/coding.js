// What becomes of a query, as it is written for Redis.
import { messageOf } from '../../../shared/errors.js';
import { detailOf } from '../../../shared/outcome.js';
import { writeAnswer } from './flight-text.js';
export function codingOf({ key }, fate, seal) {
    switch (fate.kind) {
        case 'again': {
            const value = `${fate.tries} ${Math.round(fate.waitedMs)} ${fate.company}`;
            return { key, code: 'a', value, number: fate.delayMs };
        }
        case 'lost':
            return { key, code: 'l', value: fate.detail, number: 0 };
        case 'answered': {
            const { answer } = fate;
            switch (answer.kind) {
                case 'verdict':
                case 'denial':
                    return kept(key, answer, seal);
                case 'unreadable':
                    return { key, code: 'x', value: answer.detail, number: 0 };
                case 'misconfigured':
                    return { key, code: 'm', value: answer.detail, number: 0 };
                default:
                    return { key, code: 'u', value: answer.kind === 'budget' ? '' : answer.detail, number: 0 };
            }
        }
    }
}
/** An answer that cannot be written is still one for those who wait here; the others ask again. */
function kept(key, answer, seal) {
    try {
        return { key, code: 'v', value: seal.close(writeAnswer(answer), key), number: 1 };
    }
    catch (error) {
        return { key, code: 'u', value: detailOf(`an answer that cannot be kept: ${messageOf(error)}`), number: 0 };
    }
}
