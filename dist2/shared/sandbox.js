// The sandbox contract. A box holds one episode's untrusted processes and files; it is opened from an image,
// runs commands one after another, and is closed. What a command does is a result, never an exception; BoxLost is
// thrown when the box itself is gone, and says whose doing that seems to be.
// The Docker driver and the plain-subprocess driver (trusted, scripted use only) pass one contract suite.
/** What a spec without `sandbox` means, and what episodes outside a run get. */
export const DEFAULT_LIMITS = {
    image: 'rollout-farm/python',
    memoryMb: 256,
    cpus: 1,
    pids: 128,
    tmpfsMb: 64,
    network: 'none',
    timeoutMs: 10_000,
    outputBytes: 256 * 1024,
    exec: true,
    runtime: null,
};
/** What a grade can prove, the weakest last. */
export const GRADE_LEVELS = ['apart', 'in-process', 'exit'];
/** The box is gone. `blame` is a judgement: `engine` (start failed, engine or host trouble: retry elsewhere), `action` (it died under a command while the engine is well). */
export class BoxLost extends Error {
    phase;
    blame;
    /** Short and stable for equal deaths: the same signature again is the action's own doing. */
    signature;
    constructor(phase, blame, signature, message, cause) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'BoxLost';
        this.phase = phase;
        this.blame = blame;
        this.signature = signature;
    }
}
