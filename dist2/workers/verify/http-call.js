// One POST with everything bounded: time, size of the answer, and what an error may say. Redirects are not followed.
// The key goes into one header and nowhere else.
import { setMaxListeners } from 'node:events';
import http from 'node:http';
import https from 'node:https';
export class CallFailed extends Error {
}
const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** Bytes that are not UTF-8 are no text, and not text with signs in place of some of it: only the status speaks then. */
function textOf(bytes) {
    try {
        return UTF8.decode(bytes);
    }
    catch {
        return '';
    }
}
export class HttpCaller {
    agents = {
        http: new http.Agent({ keepAlive: true, keepAliveMsecs: 10_000, maxFreeSockets: 64 }),
        https: new https.Agent({ keepAlive: true, keepAliveMsecs: 10_000, maxFreeSockets: 64 }),
    };
    /** Throws CallFailed where there is no whole answer. */
    post(url, key, body, options) {
        const secure = url.protocol === 'https:';
        const payload = Buffer.from(body);
        return new Promise((resolve, reject) => {
            if (options.signal?.aborted) {
                reject(new CallFailed('stopped'));
                return;
            }
            const request = (secure ? https : http).request(url, {
                method: 'POST',
                agent: secure ? this.agents.https : this.agents.http,
                headers: {
                    authorization: `Bearer ${key}`,
                    'content-type': 'application/json',
                    accept: 'application/json',
                    'content-length': payload.length,
                },
            });
            const end = (error, answer) => {
                clearTimeout(timer);
                options.signal?.removeEventListener('abort', stop);
                if (error) {
                    request.destroy();
                    reject(error);
                }
                else
                    resolve(answer);
            };
            const stop = () => end(new CallFailed('stopped'));
            const timer = setTimeout(() => end(new CallFailed(`no answer within ${options.timeoutMs} ms`)), options.timeoutMs);
            if (options.signal) {
                // One signal ends all calls that are under way, and they are many.
                setMaxListeners(0, options.signal);
                options.signal.addEventListener('abort', stop, { once: true });
            }
            request.on('error', (error) => end(new CallFailed(error.code ?? error.message)));
            request.on('response', (response) => {
                const chunks = [];
                let bytes = 0;
                response.on('data', (chunk) => {
                    bytes += chunk.length;
                    if (bytes > options.maxBytes)
                        end(new CallFailed(`an answer of more than ${options.maxBytes} bytes`));
                    else
                        chunks.push(chunk);
                });
                response.on('error', (error) => end(new CallFailed(error.code ?? 'the answer was cut')));
                response.on('close', () => {
                    if (!response.complete)
                        end(new CallFailed('the answer was cut'));
                });
                response.on('end', () => {
                    if (!response.complete)
                        end(new CallFailed('the answer was cut'));
                    else
                        end(null, {
                            status: response.statusCode ?? 0,
                            retryAfter: response.headers['retry-after'] ?? null,
                            body: textOf(Buffer.concat(chunks)),
                        });
                });
            });
            request.end(payload);
        });
    }
    close() {
        this.agents.http.destroy();
        this.agents.https.destroy();
    }
}
