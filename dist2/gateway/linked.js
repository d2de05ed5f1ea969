// A signal of one's own that follows others and the clock, and is let go of by hand: thousands of requests a second
// would otherwise leave their timers and weak references to the garbage collector.
import { setMaxListeners } from 'node:events';
export function linked(parents, withinMs = null) {
    const controller = new AbortController();
    // Every box and every query of a request listens to the same one.
    setMaxListeners(0, controller.signal);
    const follow = (event) => controller.abort(event.target.reason);
    let late = false;
    const timer = withinMs === null
        ? null
        : setTimeout(() => {
            late = true;
            controller.abort(new Error('the time is over'));
        }, Math.max(0, withinMs));
    for (const parent of parents) {
        if (parent.aborted)
            controller.abort(parent.reason);
        else
            parent.addEventListener('abort', follow, { once: true });
    }
    return {
        signal: controller.signal,
        get late() {
            return late;
        },
        abort: () => controller.abort(),
        release: () => {
            if (timer)
                clearTimeout(timer);
            for (const parent of parents)
                parent.removeEventListener('abort', follow);
        },
    };
}
