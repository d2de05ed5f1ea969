// `random.Random(seed).randint(low, high)` of CPython 3.11, bit for bit: MT19937 (Matsumoto and Nishimura's reference,
// seeded by its init_by_array) and rejection over `getrandbits`. The seed fixes `guess`'s secret, so it is data.
import { createHash } from 'node:crypto';
const N = 624;
const M = 397;
export class PyRandom {
    state = new Uint32Array(N);
    at = N;
    /** Takes what Python takes: an int of any size (its sign does not count), a bool, a float by its hash, a text by SHA-512. */
    constructor(seed) {
        this.seedByArray(wordsOf(seedNumber(seed)));
    }
    /** A uniform int with `low <= x <= high`. */
    randint(low, high) {
        const width = high - low + 1n;
        if (width <= 0n)
            throw new RangeError(`randint needs low <= high, got ${low} and ${high}`);
        const bits = width.toString(2).length;
        let drawn = this.getrandbits(bits);
        while (drawn >= width)
            drawn = this.getrandbits(bits);
        return low + drawn;
    }
    getrandbits(count) {
        let out = 0n;
        let shift = 0n;
        for (let left = count; left > 0; left -= 32) {
            const word = this.next();
            out |= BigInt(left < 32 ? word >>> (32 - left) : word) << shift;
            shift += 32n;
        }
        return out;
    }
    seedByArray(key) {
        const mt = this.state;
        mt[0] = 19650218;
        for (let i = 1; i < N; i++)
            mt[i] = Math.imul(1812433253, mixed(mt, i)) + i;
        let i = 1;
        let j = 0;
        for (let k = Math.max(N, key.length); k > 0; k--) {
            mt[i] = (mt[i] ^ Math.imul(mixed(mt, i), 1664525)) + key[j] + j;
            if (++i >= N) {
                mt[0] = mt[N - 1];
                i = 1;
            }
            if (++j >= key.length)
                j = 0;
        }
        for (let k = N - 1; k > 0; k--) {
            mt[i] = (mt[i] ^ Math.imul(mixed(mt, i), 1566083941)) - i;
            if (++i >= N) {
                mt[0] = mt[N - 1];
                i = 1;
            }
        }
        mt[0] = 0x80000000;
    }
    next() {
        if (this.at >= N)
            this.refill();
        let y = this.state[this.at++];
        y ^= y >>> 11;
        y ^= (y << 7) & 0x9d2c5680;
        y ^= (y << 15) & 0xefc60000;
        return (y ^ (y >>> 18)) >>> 0;
    }
    refill() {
        const mt = this.state;
        for (let i = 0; i < N; i++) {
            const y = (mt[i] & 0x80000000) | (mt[(i + 1) % N] & 0x7fffffff);
            mt[i] = mt[(i + M) % N] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
        }
        this.at = 0;
    }
}
function mixed(mt, i) {
    const before = mt[i - 1];
    return before ^ (before >>> 30);
}
/** The magnitude in 32-bit words, least first; one zero word for zero. */
function wordsOf(n) {
    const words = [];
    for (let left = n; left > 0n; left >>= 32n)
        words.push(Number(left & 0xffffffffn));
    return words.length > 0 ? words : [0];
}
function seedNumber(seed) {
    if (typeof seed === 'bigint')
        return seed < 0n ? -seed : seed;
    if (typeof seed === 'boolean')
        return BigInt(seed);
    if (typeof seed === 'number')
        return BigInt.asUintN(64, hashOfFloat(seed));
    if (typeof seed === 'string') {
        const bytes = Buffer.from(seed, 'utf8');
        return BigInt(`0x${Buffer.concat([bytes, createHash('sha512').update(bytes).digest()]).toString('hex')}`);
    }
    throw new TypeError('a seed is an int, a float or a text');
}
/** Python's hash of a float: its value modulo the prime 2^61 − 1, the sign kept, −1 avoided. */
function hashOfFloat(x) {
    if (!Number.isFinite(x))
        return x > 0 ? 314159n : x < 0 ? -314159n : 0n;
    const prime = (1n << 61n) - 1n;
    let magnitude = Math.abs(x);
    let halvings = 0n;
    // Scaling by two is exact until the fraction is gone (2^1074 at most).
    while (!Number.isInteger(magnitude)) {
        magnitude *= 2;
        halvings++;
    }
    // Halving modulo 2^61 − 1 is a rotation by one bit: the same as doubling 60 times.
    const hash = ((BigInt(magnitude) % prime) << ((61n - (halvings % 61n)) % 61n)) % prime;
    const signed = x < 0 ? -hash : hash;
    return signed === -1n ? -2n : signed;
}
