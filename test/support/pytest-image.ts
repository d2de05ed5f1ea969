// An image with pytest for the tests that judge by it: the base image and Debian's packages of pytest, unpacked.
// Made when first asked for, and found again by what it was made of.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const call = promisify(execFile);
const BASE = 'rollout-farm/python:latest';
const PACKAGES = [
  'python3-pytest',
  'python3-pluggy',
  'python3-iniconfig',
  'python3-packaging',
  'python3-attr',
  'python3-py',
];
const RECIPE = `FROM ${BASE}\nCOPY root/usr/lib/python3/dist-packages /usr/lib/python3/dist-packages\nRUN python3 -m compileall -q /usr/lib/python3/dist-packages\n`;

export async function pytestImage(): Promise<string> {
  const base = (await call('docker', ['image', 'inspect', '--format', '{{.Id}}', BASE])).stdout;
  const hash = createHash('sha256').update(`${base}${PACKAGES}${RECIPE}`).digest('hex').slice(0, 12);
  const tag = `rollout-farm-test/pytest:${hash}`;
  const there = await call('docker', ['image', 'inspect', tag]).then(
    () => true,
    () => false,
  );
  if (there) return tag;
  const folder = await mkdtemp(path.join(tmpdir(), 'farm-test-pytest-'));
  try {
    // whoever fetches them as root would have apt's own user write into a folder that is not his
    const download = () =>
      call('apt-get', ['-q', '-o', 'APT::Sandbox::User=root', 'download', ...PACKAGES], { cwd: folder });
    await download().catch(async () => {
      await call('apt-get', ['-q', 'update']);
      await download();
    });
    for (const name of await readdir(folder)) await call('dpkg-deb', ['-x', name, 'root'], { cwd: folder });
    await writeFile(path.join(folder, 'Dockerfile'), RECIPE);
    await call('docker', ['build', '-q', '-t', tag, '.'], {
      cwd: folder,
      env: { ...process.env, DOCKER_BUILDKIT: '0' },
    });
    return tag;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
