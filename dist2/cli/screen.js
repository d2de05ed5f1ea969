// Where a command's own lines and its progress bar meet: a line clears the bar first, so that neither is glued to the other.
const CLEAR = '\r\x1b[K';
export class Screen {
    /** Whether there is a terminal that can show a bar. */
    live = process.stderr.isTTY === true;
    bar = false;
    /** Writes whole lines. */
    lines = (text) => {
        process.stderr.write(this.bar ? CLEAR + text : text);
        this.bar = false;
    };
    /** Draws the bar in place of the last one; only on a terminal. */
    draw(text) {
        process.stderr.write(CLEAR + text);
        this.bar = true;
    }
    end() {
        if (this.bar)
            process.stderr.write(CLEAR);
        this.bar = false;
    }
}
