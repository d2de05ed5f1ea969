// One channel a process: answers to what it waits for, got by other processes. A message can be lost with its
// connection, so `onReturn` tells when to look for oneself.
import { openRedis } from '../../../shared/redis/connect.js';
import { FLEET_KEY } from './upstream.js';
const KEY = 43;
const HEAD = KEY + 1 + 8;
export class Mailbox {
    /** Resolves when messages arrive. */
    ready;
    subscriber;
    constructor(place, process, onMail, onReturn) {
        this.subscriber = openRedis(place);
        this.subscriber.on('messageBuffer', (_, message) => {
            for (const [key, coded] of readMail(message))
                onMail(key, coded);
        });
        let first = true;
        this.ready = this.subscriber.subscribe(`${FLEET_KEY}:n:${process}`).then(() => {
            first = false;
        }, () => { });
        this.subscriber.on('ready', () => {
            if (!first)
                onReturn();
        });
    }
    close() {
        this.subscriber.disconnect();
    }
}
/** What processes.lua's `post` wrote. */
function* readMail(message) {
    let at = 0;
    while (at + HEAD <= message.length) {
        const head = message.toString('latin1', at, at + HEAD);
        const bytes = Number(head.slice(KEY + 1));
        at += HEAD;
        yield [head.slice(0, KEY), { code: head.charAt(KEY), value: message.subarray(at, at + bytes) }];
        at += bytes;
    }
}
