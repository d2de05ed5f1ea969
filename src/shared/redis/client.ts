// What the house calls Redis: one server (also by Sentinel's word), or a cluster of them. Commands are the same; a command
// that names no key goes to any node of a cluster, so whatever asks about "the server" asks with care (nodes.ts).

import type { Cluster, Redis as Single } from 'ioredis';

export type Redis = Single | Cluster;
