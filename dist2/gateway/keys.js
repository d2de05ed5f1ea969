// Who may call: the keys of FARM_API_KEY (several, so that they can be rotated), sent as Bearer, as X-API-Key or as the
// password of Basic, compared in constant time. Without a key only this machine may call, and no web page through a
// browser on it: neither by another name for loopback nor from another origin.
import { isIP } from 'node:net';
import { isAuthorized } from './mapping/openrlhf.js';
import { HttpProblem } from './problem.js';
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|::1)$/i;
export function isLoopback(host) {
    return LOOPBACK.test(host) && (host.toLowerCase() === 'localhost' || isIP(host.replace(/^\[|\]$/g, '')) > 0);
}
export class Keys {
    keys;
    /** `text`: FARM_API_KEY as it stands. Blanks around a key do not belong to it. */
    constructor(text) {
        this.keys = (text ?? '')
            .split(',')
            .map((key) => key.trim())
            .filter((key) => key !== '');
    }
    get open() {
        return this.keys.length === 0;
    }
    /** Throws HttpProblem (401, or 403 for a browser's page from elsewhere). */
    admit(headers) {
        if (this.open) {
            fromThisMachine(headers);
            return;
        }
        const own = headers['x-api-key'];
        const apiKey = typeof own === 'string' ? own.trim() : undefined;
        if (isAuthorized({ authorization: headers.authorization, apiKey }, this.keys))
            return;
        throw new HttpProblem(401, 'unauthorized', 'a key of this farm is needed', 'send it as "Authorization: Bearer KEY", as "X-API-Key: KEY", or as the password of the URL', { 'www-authenticate': 'Basic realm="rollout farm", charset="UTF-8"' });
    }
}
// A page in a browser can send simple requests to loopback, and by a name of its own even read the answers.
function fromThisMachine(headers) {
    const host = (headers.host ?? '').replace(/:\d+$/, '');
    const origin = headers.origin;
    const foreign = origin !== undefined && origin !== `http://${headers.host}`;
    if ((headers.host === undefined || isLoopback(host)) && !foreign)
        return;
    throw new HttpProblem(403, 'not_this_machine', 'without FARM_API_KEY only programs on this machine may call, by a loopback address', 'set FARM_API_KEY, and send it');
}
