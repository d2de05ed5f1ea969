// A gate before Redis that knows the ledger's scripts by name: what becomes of a call is for the test to say.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';

const FOLDER = new URL('../../src/shared/ledger/', import.meta.url);

/** Names of the ledger's scripts, by their hashes. */
const NAMES = scriptNames();

/** `hold`: Redis never hears of it. `lose`: it does it, and its answer is lost; called back when it has. */
export type Fate = 'pass' | 'hold' | { lose: () => void };

export class ScriptGate {
  fate: (script: string) => Fate = () => 'pass';
  private readonly to: string;
  private readonly server = net.createServer((near) => this.join(near));
  private readonly sockets = new Set<net.Socket>();

  /** `to`: the socket of a redis-server. */
  static async open(to: string): Promise<ScriptGate> {
    const gate = new ScriptGate(to);
    await new Promise<void>((resolve) => gate.server.listen(0, '127.0.0.1', resolve));
    return gate;
  }

  private constructor(to: string) {
    this.to = to;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private join(near: net.Socket): void {
    const far = net.connect(this.to);
    const commands = new CommandSplitter();
    let lost: (() => void) | null = null;
    let held = false;
    near.on('data', (piece) => {
      for (const { bytes, script } of commands.split(piece)) {
        const fate = script === null || held ? 'pass' : this.fate(script);
        held ||= fate === 'hold';
        if (held) return;
        if (typeof fate === 'object') lost = fate.lose;
        far.write(bytes);
      }
    });
    far.on('data', (piece) => {
      if (lost === null) near.write(piece);
      else lost();
    });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
    }
  }
}

/** Whole commands out of what comes in pieces, each an array of texts. */
class CommandSplitter {
  private rest: Buffer = Buffer.alloc(0);

  *split(piece: Buffer): Generator<{ bytes: Buffer; script: string | null }> {
    this.rest = this.rest.length === 0 ? piece : Buffer.concat([this.rest, piece]);
    for (let command = this.next(); command !== null; command = this.next()) yield command;
  }

  private next(): { bytes: Buffer; script: string | null } | null {
    let at = 0;
    const line = (): string | null => {
      const end = this.rest.indexOf('\r\n', at);
      if (end < 0) return null;
      const text = this.rest.toString('latin1', at, end);
      at = end + 2;
      return text;
    };
    const count = line();
    if (count === null) return null;
    const words: string[] = [];
    for (let i = 0; i < Number(count.slice(1)); i++) {
      const length = Number(line()?.slice(1) ?? Number.NaN);
      if (Number.isNaN(length) || this.rest.length < at + length + 2) return null;
      if (i < 2) words.push(this.rest.toString('latin1', at, at + length));
      at += length + 2;
    }
    const bytes = this.rest.subarray(0, at);
    this.rest = this.rest.subarray(at);
    return { bytes, script: words[0]?.toUpperCase() === 'EVALSHA' ? (NAMES.get(words[1] ?? '') ?? null) : null };
  }
}

function scriptNames(): ReadonlyMap<string, string> {
  const read = (name: string): string => readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8');
  const names = new Map<string, string>();
  for (const file of readdirSync(FOLDER)) {
    const name = /^(.+)\.lua$/.exec(file)?.[1];
    if (name === undefined) continue;
    for (const flags of ['', ' flags=allow-oom']) {
      const text = `#!lua${flags}\n${[read('common'), read('version'), read(name)].join('\n')}`;
      names.set(createHash('sha1').update(text).digest('hex'), name);
    }
  }
  return names;
}
