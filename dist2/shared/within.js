// A wait with a deadline, where being late is an answer and no error.
/** What `promise` gives or throws; `late` when it has done neither after `ms`. What it does later is nobody's. */
export async function within(promise, ms, late) {
    let timer;
    const deadline = new Promise((resolve) => {
        timer = setTimeout(resolve, ms, late);
    });
    try {
        return await Promise.race([promise, deadline]);
    }
    finally {
        clearTimeout(timer);
    }
}
