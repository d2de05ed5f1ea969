// Sees every command that a Redis executes, those of scripts too (MONITOR), and holds what belongs together, a command, a
// script with all that it does, a transaction, to Redis Cluster's rule: keys of one slot.

import { getKeyIndexes } from '@ioredis/commands';
import keySlot from 'cluster-key-slot';
import type { Redis } from 'ioredis';

interface Unit {
  what: string;
  keys: Set<string>;
}

export class SlotWatch {
  /** Names of all commands seen, as ACL has them. */
  readonly commands = new Set<string>();
  /** Texts of scripts that were sent whole: each at its first call. */
  readonly scripts: string[] = [];
  readonly keys = new Set<string>();
  private readonly wrong: string[] = [];
  private readonly transactions = new Map<string, Unit>();
  private unit: Unit | null = null;
  private readonly monitor: Redis;

  private constructor(monitor: Redis) {
    this.monitor = monitor;
    monitor.on('monitor', (_time: string, args: string[], source: string) => this.see(args, source));
  }

  static async on(redis: Redis): Promise<SlotWatch> {
    return new SlotWatch(await redis.monitor());
  }

  /** Of those that are over: what went across slots. */
  get faults(): string[] {
    return this.wrong;
  }

  close(): void {
    this.finish();
    this.monitor.disconnect();
  }

  private see(args: string[], source: string): void {
    const [name = '', ...rest] = args.map(plain);
    const command = name.toLowerCase();
    this.commands.add(command);
    if (command === 'eval' && source !== 'lua') this.scripts.push(rest[0] ?? '');
    if (command === 'multi') this.transactions.set(source, { what: 'a transaction', keys: new Set() });
    if (source !== 'lua') {
      this.finish();
      this.unit = { what: `${command} ${rest.slice(0, 3).join(' ').slice(0, 120)}`, keys: new Set() };
    }
    for (const key of keysOf(command, rest)) {
      this.keys.add(key);
      this.unit?.keys.add(key);
      this.transactions.get(source)?.keys.add(key);
    }
    if (command !== 'exec') return;
    this.judge(this.transactions.get(source));
    this.transactions.delete(source);
  }

  private finish(): void {
    this.judge(this.unit ?? undefined);
    this.unit = null;
  }

  private judge(unit: Unit | undefined): void {
    const slots = new Map([...(unit?.keys ?? [])].map((key) => [keySlot(key), key]));
    if (slots.size > 1) this.wrong.push(`${unit?.what}: ${[...slots.values()].join(' | ')}`);
  }
}

/** MONITOR shows a text as C would write it, byte by byte. */
function plain(shown: string): string {
  const bytes = shown.replace(/\\(x[0-9a-f]{2}|.)/g, (_, what: string) =>
    what.length > 1 ? String.fromCharCode(Number.parseInt(what.slice(1), 16)) : (ESCAPED[what] ?? what),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

const ESCAPED: Record<string, string> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };

function keysOf(command: string, args: string[]): string[] {
  try {
    return getKeyIndexes(command, args).map((i) => String(args[i]));
  } catch {
    // Not a command that names keys (the list has all that do).
    return [];
  }
}
