// Whole commands and the keeper run as `node dist/…`, so dist must be what src says. Does what `./farm` does, under the
// same lock, and nothing if dist is fresh. A type error is told and does not stop it: `npm run check` is there for those.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const MAIN = path.join(ROOT, 'dist/cli/main.js');

const BUILD = `
set -e
if [ ! -e dist/.stamp ] || [ -n "$(find src tsconfig.build.json tsconfig.json -newer dist/.stamp -print -quit)" ]; then
  npm run --silent build || [ -e dist/cli/main.js ]
fi`;

let built = false;

export function ensureBuilt(): void {
  if (built) return;
  built = true;
  execFileSync('flock', ['.farm.lock', 'bash', '-c', BUILD], { cwd: ROOT, stdio: ['ignore', 2, 2] });
}
