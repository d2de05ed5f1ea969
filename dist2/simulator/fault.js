// The answers of a platform in trouble, kind by kind.
const CODES = {
    rate_limit: [429, 'rate_limit_exceeded', 'too many requests'],
    unauthorized: [401, 'unauthorized', 'the key is not valid'],
    forbidden: [403, 'capability_disabled', 'the capability is disabled'],
    not_found: [404, 'not_found', 'no such platform'],
    internal_error: [500, 'internal_error', 'an error inside'],
    backend_unavailable: [503, 'backend_unavailable', 'the backend does not answer'],
    too_big: [413, 'payload_too_large', 'the request is too large'],
    not_understood: [415, 'unsupported_media_type', 'this is not understood'],
};
export function failCall(fault) {
    switch (fault.kind) {
        case 'hang':
            return { hang: true };
        case 'reset':
            return { reset: true };
        case 'proxy_503':
            return { status: 503, raw: '<html><body>no healthy instance</body></html>' };
        case 'garbage':
            return { status: 200, raw: '<html>hello</html>' };
        case 'no_batch':
            return { status: 404, raw: 'Not Found' };
        case 'cut_body':
            return { status: 200, raw: '{"ok": true, "data": {"decision": "permit", "proof_checked": true}}', cut: true };
        case 'wrong_schema_version':
        case 'unavailable':
            throw new Error('these change an answer');
        default: {
            const { status, body } = failItem(fault);
            const headers = fault.kind === 'rate_limit' ? { 'retry-after': String(fault.retry_after_s) } : {};
            return {
                status,
                body: new Map([
                    ['ok', false],
                    ['error', body],
                ]),
                headers,
            };
        }
    }
}
/** The error of one item of a batch. Kinds that only a whole call can have are an error inside. */
export function failItem(fault) {
    const [status, code, message] = CODES[fault.kind] ?? CODES.internal_error;
    return {
        status,
        body: new Map([
            ['code', code],
            ['message', message],
        ]),
    };
}
