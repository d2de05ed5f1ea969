// Whether every number of a value is finite: a NaN or an infinity is refused where it arises.
import { isMap } from '../../shared/json/value.js';
export function allFinite(value) {
    if (typeof value === 'number')
        return Number.isFinite(value);
    if (Array.isArray(value))
        return value.every(allFinite);
    return !isMap(value) || [...value.values()].every(allFinite);
}
