// Machines, as far as the network goes: each a namespace with an address of its own, all on one switch in a namespace that
// belongs to nobody. A cable can be pulled, and put back. As root, with iproute2; nothing of it is on the host's own network.

import { execFileSync } from 'node:child_process';

/** Of the block that is set aside for measuring between devices (RFC 2544): nobody's route leads there. */
const NET = '198.19.77';
const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

export class TestNetwork {
  private readonly prefix = `farm-net-${process.pid}`;
  private readonly names: string[] = [];

  constructor() {
    ip('netns', 'add', this.switch);
    ip('-n', this.switch, 'link', 'add', 'bridge', 'type', 'bridge');
    ip('-n', this.switch, 'link', 'set', 'bridge', 'up');
  }

  private get switch(): string {
    return `${this.prefix}-switch`;
  }

  machine(name: string): Machine {
    const space = `${this.prefix}-${name}`;
    const [number, port] = [this.names.push(space), `port${this.names.length}`];
    ip('netns', 'add', space);
    ip('-n', space, 'link', 'set', 'lo', 'up');
    ip('-n', this.switch, 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space);
    ip('-n', this.switch, 'link', 'set', port, 'master', 'bridge', 'up');
    const address = `${NET}.${number}`;
    ip('-n', space, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
    ip('-n', space, 'link', 'set', 'eth0', 'up');
    const cable = (state: 'up' | 'down') => (): void => ip('-n', this.switch, 'link', 'set', port, state);
    return { address, inside: ['ip', 'netns', 'exec', space], cut: cable('down'), mend: cable('up') };
  }

  close(): void {
    for (const space of [...this.names.splice(0), this.switch]) ip('netns', 'del', space);
  }
}

export interface Machine {
  address: string;
  /** Put in front of a command, it runs there. */
  inside: readonly string[];
  cut(): void;
  mend(): void;
}
