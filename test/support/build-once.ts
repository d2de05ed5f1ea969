// Vitest's global set-up: whole commands and the keeper run as `node dist/…`, so dist must be what src says. Does what
// `./farm` does, under the same lock, and nothing if dist is fresh.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const BUILD = `
set -e
if [ ! -e dist/.stamp ] || [ -n "$(find src tsconfig.build.json tsconfig.json -newer dist/.stamp -print -quit)" ]; then
  node_modules/.bin/tsc -p tsconfig.build.json
  (cd src && find . -type f ! -name '*.ts' -exec cp --parents {} ../dist/ \\;)
  touch dist/.stamp
fi`;

export default function buildOnce(): void {
  execFileSync('flock', ['.farm.lock', 'bash', '-c', BUILD], { cwd: ROOT, stdio: ['ignore', 2, 2] });
}
