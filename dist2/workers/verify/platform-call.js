// One call to a platform, single or batch, and what it means for each of its queries. Total: what goes wrong is a
// meaning, never a throw. The key goes into one header; a platform that echoes it does not bring it any further.
import { messageOf } from '../../shared/errors.js';
import { detailOf } from '../../shared/outcome.js';
import { CallFailed, HttpCaller } from './http-call.js';
import { mayHold, redactor } from './redact.js';
import { itemMeanings, meaningOf } from './wire.js';
import { batchBody, bodyText, singleBody } from './wire-request.js';
const BODY_BYTES = 16 * 1024 * 1024;
/** What several queries may weigh together; one alone may be larger. */
const REQUEST_CHARS = 4 * 1024 * 1024;
/** A platform that calls one query of less than this too large is not to be believed. */
const SMALL_CHARS = 256 * 1024;
/** Nobody took the call: no query is to blame. */
const ABSENT = /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN/;
const PROXY = new Set([502, 503, 504]);
export class PlatformCaller {
    platform;
    http = new HttpCaller();
    redact;
    constructor(platform) {
        this.platform = platform;
        this.redact = redactor(platform.apiKey);
    }
    /** `single`: only the first query, over the single path. */
    async call(queries, single, options) {
        const all = (meaning, suspect) => ({
            meanings: queries.map((query) => this.clean(queries.length > 1 ? meaning : believed(meaning, query))),
            whole: meaning.kind,
            suspect,
            unsent: false,
        });
        try {
            const path = `/api/v1/platforms/${this.platform.platformId}/${single ? 'query' : 'query-batch'}`;
            const payload = bodyText(single ? singleBody(queries[0], false) : batchBody(queries));
            if (queries.length > 1 && payload.length > REQUEST_CHARS)
                return { ...all({ kind: 'too_big', detail: 'more than is sent at once' }, false), unsent: true };
            const answer = await this.http.post(this.url(path), this.platform.apiKey, payload, {
                timeoutMs: options.timeoutMs,
                maxBytes: BODY_BYTES,
                signal: options.signal,
            });
            const { platformId } = this.platform;
            const count = single ? 1 : queries.length;
            const redact = mayHold(answer.body, this.platform.apiKey) ? this.redact : null;
            const body = redact === null ? answer.body : redact(answer.body);
            const meaning = meaningOf({ ...answer, body }, { batch: !single, count, platformId, redact }, options.now);
            // A batch of one was refused without a word about its facts: the single path tells whether that is about the query.
            if (meaning.kind === 'apart' && queries.length === 1)
                return await this.call(queries, true, options);
            if (meaning.kind !== 'verdict')
                return all(meaning, !PROXY.has(answer.status));
            const read = single ? [meaning] : itemMeanings(meaning.data, queries.length, platformId);
            const meanings = read.map((one, i) => this.clean(believed(one, queries[i])));
            return { meanings, whole: null, suspect: false, unsent: false };
        }
        catch (error) {
            if (error instanceof BadUrl)
                return all({ kind: 'misconfigured', detail: error.message }, false);
            if (!(error instanceof CallFailed))
                throw error;
            const detail = this.redact(messageOf(error));
            return all({ kind: 'infrastructure', detail }, !ABSENT.test(detail));
        }
    }
    close() {
        this.http.close();
    }
    url(path) {
        const { baseUrl } = this.platform;
        const base = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
        if (!base || !/^https?:$/.test(base.protocol))
            throw new BadUrl('the base URL is not an http or https address');
        return new URL(`${baseUrl}${path}`);
    }
    /** What leaves here is bounded, and never has the key in it. */
    clean(meaning) {
        if (meaning.kind === 'denial') {
            const { denial } = meaning;
            return { kind: 'denial', denial: { ...denial, message: this.redact(denial.message) } };
        }
        if (!('detail' in meaning))
            return meaning;
        const detail = detailOf(this.redact(meaning.detail));
        return { ...meaning, detail };
    }
}
class BadUrl extends Error {
}
/** Of one query: too large it is only where it is large. */
function believed(meaning, query) {
    if (meaning.kind !== 'too_big' || bodyText(singleBody(query, false)).length >= SMALL_CHARS)
        return meaning;
    return { kind: 'infrastructure', detail: `a small query is called too large: ${meaning.detail}` };
}
