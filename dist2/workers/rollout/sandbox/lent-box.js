// A box of the pool as an episode has it. Given back when the episode closes it, with whether anything befell it that a
// reset should not be trusted with.
import { BoxLost, } from '../../../shared/sandbox.js';
export class LentBox {
    imageId;
    runnerHash;
    isolation;
    startMs;
    #box;
    #giveBack;
    /** Nothing was written or run since it was made or proven to be as new. */
    #pristine = true;
    #sound = true;
    #atWork = 0;
    #closing = null;
    constructor(box, terms) {
        this.#box = box;
        this.#giveBack = terms.giveBack;
        this.imageId = box.imageId;
        this.runnerHash = box.runnerHash;
        this.isolation = terms.recycled && box.isolation === 'fresh' ? 'recycled' : box.isolation;
        this.startMs = terms.startMs;
    }
    get well() {
        return this.#closing === null && this.#box.well;
    }
    async write(files) {
        const written = await this.#use(() => this.#box.write(files));
        if (!written.ok && written.reason === 'escape')
            this.#sound = false;
        return written;
    }
    run(command) {
        return this.#use(() => this.#box.run(command));
    }
    async grade(check) {
        const grade = await this.#use(() => this.#box.grade(check));
        if (grade.status === 'not_laid' && grade.reason === 'escape')
            this.#sound = false;
        return grade;
    }
    read(caps) {
        return this.#use(() => this.#box.read(caps));
    }
    async reset() {
        if (this.#pristine && this.#closing === null && this.#box.well)
            return;
        await this.#use(() => this.#box.reset());
        this.#pristine = true;
    }
    close() {
        // What is still at work must end: no reset would wait for it.
        this.#closing ??= this.#giveBack(this.#sound && this.#atWork === 0 && this.#box.well);
        return this.#closing;
    }
    async #use(work) {
        this.#whileOpen();
        this.#pristine = false;
        this.#atWork += 1;
        try {
            const result = await work();
            // what came of it may be the closing's doing
            this.#whileOpen();
            return result;
        }
        catch (error) {
            this.#sound = false;
            throw error;
        }
        finally {
            this.#atWork -= 1;
        }
    }
    #whileOpen() {
        if (this.#closing !== null)
            throw new BoxLost('run', 'engine', 'closed', 'the box is closed');
    }
}
