// Query texts and answers lie in Redis (and in its AOF, on disk) sealed: what a prompt or a certificate says can be read
// by those who hold the upstream's key, and by nobody else. A text is bound to its flight: moved elsewhere it does not open.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Random bytes for so many texts are drawn at once: each draw costs more than its bytes. */
const NONCES = 128;
export class Seal {
    key;
    pool = Buffer.alloc(0);
    constructor(apiKey, upstream) {
        this.key = Buffer.from(hkdfSync('sha256', apiKey, upstream, 'rollout-farm fleet', 32));
    }
    close(text, flight) {
        const nonce = this.nonce();
        const cipher = createCipheriv(CIPHER, this.key, nonce).setAAD(Buffer.from(flight));
        const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
        return Buffer.concat([nonce, cipher.getAuthTag(), body]);
    }
    nonce() {
        if (this.pool.length === 0)
            this.pool = randomBytes(NONCE_BYTES * NONCES);
        const nonce = this.pool.subarray(0, NONCE_BYTES);
        this.pool = this.pool.subarray(NONCE_BYTES);
        return nonce;
    }
    /** Null for what was not sealed with this key for this flight. */
    open(sealed, flight) {
        try {
            const nonce = sealed.subarray(0, NONCE_BYTES);
            const cipher = createDecipheriv(CIPHER, this.key, nonce, { authTagLength: TAG_BYTES })
                .setAAD(Buffer.from(flight))
                .setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
            return Buffer.concat([cipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), cipher.final()]).toString('utf8');
        }
        catch {
            return null;
        }
    }
}
