// Numbers that a seed fixes, for ever and on every machine: a schedule is made of nothing else. (splitmix64, cut to 32 bits)
const MASK = (1n << 64n) - 1n;
export class Draws {
    state;
    constructor(seed) {
        this.state = seed & MASK;
    }
    /** A whole number from 0 up to, and not including, `below`. */
    below(below) {
        this.state = (this.state + 0x9e3779b97f4a7c15n) & MASK;
        let z = this.state;
        z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
        z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
        const bits = Number((z ^ (z >> 31n)) >> 32n);
        return Math.floor((bits / 2 ** 32) * below);
    }
    between(low, high) {
        return low + this.below(high - low + 1);
    }
    /** In a new order. */
    shuffled(list) {
        const out = [...list];
        for (let i = out.length - 1; i > 0; i--) {
            const j = this.below(i + 1);
            [out[i], out[j]] = [out[j], out[i]];
        }
        return out;
    }
}
