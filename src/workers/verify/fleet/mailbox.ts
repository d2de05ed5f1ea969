// One channel a process: answers to what it waits for, got by other processes. A message can be lost with its
// connection, so `onReturn` tells when to look for oneself.

import type { Redis } from '../../../shared/redis/client.ts';
import { openRedis, type RedisPlace } from '../../../shared/redis/connect.ts';
import type { Coded } from './exchange-reply.ts';
import { FLEET_KEY } from './upstream.ts';

const KEY = 43;
const HEAD = KEY + 1 + 8;

export class Mailbox {
  /** Resolves when messages arrive. */
  readonly ready: Promise<void>;
  private readonly subscriber: Redis;

  constructor(place: RedisPlace, process: string, onMail: (key: string, coded: Coded) => void, onReturn: () => void) {
    this.subscriber = openRedis(place);
    this.subscriber.on('messageBuffer', (_: Buffer, message: Buffer) => {
      for (const [key, coded] of readMail(message)) onMail(key, coded);
    });
    let first = true;
    this.ready = this.subscriber.subscribe(`${FLEET_KEY}:n:${process}`).then(
      () => {
        first = false;
      },
      () => {},
    );
    this.subscriber.on('ready', () => {
      if (!first) onReturn();
    });
  }

  close(): void {
    this.subscriber.disconnect();
  }
}

/** What processes.lua's `post` wrote. */
function* readMail(message: Buffer): Generator<[string, Coded]> {
  let at = 0;
  while (at + HEAD <= message.length) {
    const head = message.toString('latin1', at, at + HEAD);
    const bytes = Number(head.slice(KEY + 1));
    at += HEAD;
    yield [head.slice(0, KEY), { code: head.charAt(KEY), value: message.subarray(at, at + bytes) }];
    at += bytes;
  }
}
