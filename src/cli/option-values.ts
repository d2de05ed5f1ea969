// What the command line's options take, read from their texts; what they do not is a usage error.

import { InvalidArgumentError } from 'commander';
import { readSlots, type Slots, writeSlots } from '../shared/lane.ts';

export function upTo(most: number): (text: string) => number {
  return (text) => {
    const n = Number(text);
    if (!/^\d+$/.test(text) || n < 1 || n > most)
      throw new InvalidArgumentError(`a whole number from 1 to ${most} is wanted, not ${JSON.stringify(text)}`);
    return n;
  };
}

export const count = upTo(100_000);

/** `8`, or how many of each lane: `rollout=8,light=64,interactive=2`. */
export function slots(text: string): number | Slots {
  if (/^\d+$/.test(text)) return count(text);
  const read = readSlots(text);
  if (writeSlots(read) === '' || text.split(',').length !== Object.keys(read).length)
    throw new InvalidArgumentError(
      `a whole number or rollout=N,light=N,interactive=N is wanted, not ${JSON.stringify(text)}`,
    );
  return read;
}

export function number(text: string): number {
  return text === '0' ? 0 : count(text);
}

export function port(text: string): number {
  const n = Number(text);
  if (!/^\d+$/.test(text) || n > 65_535)
    throw new InvalidArgumentError(`a port from 0 to 65535 is wanted, not ${JSON.stringify(text)}`);
  return n;
}

export function integer(text: string): bigint {
  if (!/^[+-]?\d+$/.test(text)) throw new InvalidArgumentError(`an integer is wanted, not ${JSON.stringify(text)}`);
  return BigInt(text);
}
