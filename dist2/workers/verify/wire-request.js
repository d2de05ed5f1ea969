// The bodies that are sent: the library's own, key for key and in its order. JSON is ASCII, so that a lone
// surrogate in a completion travels as an escape instead of failing here.
import { dumpJson } from '../../shared/json/json.js';
import { pyTruthy } from '../../shared/json/value.js';
import { PROJECTION } from './wire.js';
/** `projection: false` for servers from before there was one: they have no batch path either. */
export function singleBody(query, projection) {
    const body = new Map([
        ['query', query.query],
        ['explain', true],
        ['top_k', 10n],
        ['facts', query.facts],
    ]);
    if (query.predictions !== null)
        body.set('predictions', query.predictions);
    if (query.relations !== null)
        body.set('relations', query.relations);
    if (projection)
        body.set('projection', PROJECTION);
    return body;
}
export function batchBody(queries) {
    const items = queries.map((query) => {
        const item = new Map([
            ['query', query.query],
            ['facts', query.facts],
            ['explain', true],
        ]);
        if (pyTruthy(query.relations))
            item.set('relations', query.relations);
        if (query.predictions !== null)
            item.set('predictions', query.predictions);
        return item;
    });
    return new Map([
        ['queries', items],
        ['projection', PROJECTION],
    ]);
}
export function bodyText(body) {
    return dumpJson(body, { compact: true });
}
