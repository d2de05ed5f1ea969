// OpenRLHF's remote reward model (`POST /get_reward`) as pure functions: what a body asks, and the answer's bytes,
// as the Python library's app has them, its errors too. Read leniently, because a refusal ends the trainer's run; only
// what is no request at all is 400.
import { createHash, timingSafeEqual } from 'node:crypto';
import { dumpJson, JsonError, parseJson } from '../../shared/json/json.js';
import { isMap } from '../../shared/json/value.js';
import { str } from '../../shared/python/text.js';
import { decodeJsonBytes } from './json-bytes.js';
import { flatten } from './reward-call.js';
export const ENDPOINT = '/get_reward';
/** What refuses a request by its line; null if nothing does. Method before path, as there; keys come after both. */
export function refusalOf(method, path, endpoint = ENDPOINT) {
    if (method !== 'POST')
        return refusal(405, 'POST required');
    return (path || '/') === endpoint ? null : refusal(404, 'unknown endpoint');
}
export function refusal(status, error) {
    return { status, body: dumpJson(new Map([['error', error]])) };
}
/**
 * One of `keys` as bearer token, in `X-API-Key`, or as the password of `Basic`: a trainer that can only put a key
 * into the URL sends it so. A bearer token that is there decides alone. No keys: everybody may call.
 */
export function isAuthorized({ authorization = '', apiKey = '' }, keys) {
    if (keys.length === 0)
        return true;
    const bearer = authorization.startsWith('Bearer ') ? authorization.slice('Bearer '.length).trim() : '';
    const presented = bearer === '' ? [apiKey, basicPassword(authorization)] : [bearer];
    let found = false;
    // Every key is compared, in constant time, whichever fits.
    for (const key of presented)
        for (const known of keys)
            found = (key !== '' && sameKey(key, known)) || found;
    return found;
}
function basicPassword(authorization) {
    if (!authorization.startsWith('Basic '))
        return '';
    const pair = Buffer.from(authorization.slice('Basic '.length), 'base64').toString('utf8');
    return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : '';
}
function sameKey(a, b) {
    const digest = (key) => createHash('sha256').update(key).digest();
    return timingSafeEqual(digest(a), digest(b));
}
/** The call that a body asks for; `goldKey` is the metadata's name for a label. */
export function readRewardRequest(body, goldKey = 'gold') {
    const data = jsonObject(body);
    const queries = data?.get('query') ?? data?.get('queries');
    if (!data || !Array.isArray(queries))
        return refusal(400, 'malformed request');
    const prompts = listOf(data.get('prompts'));
    const labels = listOf(data.get('labels'));
    return {
        prompts: queries.map((_, i) => (isNothing(prompts[i]) ? '' : str(prompts[i]))),
        completions: queries.map(flatten),
        metadata: queries.map((_, i) => new Map(isNothing(labels[i]) ? [] : [[goldKey, labels[i]]])),
    };
}
/** The answer's body: `rewards` and `scores`, the two names under which clients look. Numbers are floats, as there. */
export function rewardBody(rewards, scores = rewards) {
    return dumpJson(new Map([
        ['rewards', [...rewards]],
        ['scores', [...scores]],
    ]));
}
function jsonObject(body) {
    const text = decodeJsonBytes(body);
    if (text === null)
        return null;
    try {
        const value = parseJson(text);
        return isMap(value) ? value : null;
    }
    catch (error) {
        if (error instanceof JsonError)
            return null;
        throw error;
    }
}
function listOf(value) {
    return Array.isArray(value) ? value : [];
}
function isNothing(value) {
    return value === undefined || value === null;
}
