// Images that are not like ours: what they lack, what they bring, what they are not for. Each is made here, by
// `docker import`, and removed; each either makes a box that works or is refused with a reason.

import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { toValue } from '../../src/shared/json/json.ts';
import type { Box } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { runnerHash } from '../../src/workers/rollout/sandbox/image.ts';
import { build, playActions } from './rollout/test-context.ts';
import { bytes, LABELS, LIMITS, python, run } from './sandbox-contract.ts';

const never = new AbortController().signal;
const exec = promisify(execFile);
const docker = async (...args: string[]) => (await exec('docker', args)).stdout.trim();

const makePipe = (at: string): void =>
  void execFileSync('python3', ['-c', 'import os, sys; os.mkfifo(sys.argv[1])', at]);

/** All that some images have: says its arguments, writes a file, forks. */
const TOOL = `
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) printf("%s\\n", argv[i]);
  FILE *f = fopen("made", "w");
  if (f == NULL || fputs("by tool", f) < 0 || fclose(f) != 0) return 2;
  if (fork() == 0) _exit(0);
  wait(NULL);
  return getenv("HOME") == NULL ? 3 : 0;
}`;

describe('an image', () => {
  const driver = createDockerDriver({ dockerHost: null });
  const folder = mkdtempSync(path.join(tmpdir(), 'farm-images-'));
  const made: string[] = [];

  beforeAll(async () => {
    writeFileSync(path.join(folder, 'tool.c'), TOOL);
    for (const kind of ['static', 'dynamic'])
      await exec('musl-gcc', ['-O1', ...(kind === 'static' ? ['-static'] : []), '-o', kind, 'tool.c'], { cwd: folder });
  });
  afterEach(async () => {
    for (const name of made.splice(0)) {
      const id = await docker('image', 'inspect', '--format', '{{.Id}}', name).catch(() => null);
      if (id !== null) await docker('rmi', '-f', `rollout-farm/box:${id.slice(7, 19)}-${runnerHash()}`).catch(() => '');
      await docker('rmi', '-f', name).catch(() => '');
    }
  });
  afterAll(async () => {
    await driver.close();
    rmSync(folder, { recursive: true });
  });

  /** An image of the files that `lay` puts into a folder. */
  async function imageOf(lay: (root: string) => void, ...changes: string[]): Promise<string> {
    const root = mkdtempSync(path.join(folder, 'root-'));
    mkdirSync(path.join(root, 'bin'));
    cpSync(path.join(folder, 'static'), path.join(root, 'bin', 'tool'));
    lay(root);
    await exec('tar', ['--owner=0', '--group=0', '-C', root, '-cf', `${root}.tar`, '.']);
    const name = `rollout-farm-test-image:${path
      .basename(root)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, '')}-${process.pid}`;
    made.push(name);
    await docker('import', ...changes.flatMap((change) => ['--change', change]), `${root}.tar`, name);
    return name;
  }

  const pythonWith = async (...changes: string[]): Promise<string> => {
    const name = `rollout-farm-test-image:python-${process.pid}`;
    made.push(name);
    const base = await docker('create', '--network', 'none', LIMITS.image, 'true');
    await docker('commit', ...changes.flatMap((change) => ['--change', change]), base, name);
    await docker('rm', base);
    return name;
  };

  async function within(image: string, work: (box: Box) => Promise<void>): Promise<void> {
    await driver.prepare(image);
    const box = await driver.open({ ...LIMITS, image }, LABELS, never);
    try {
      await work(box);
    } finally {
      await box.close();
    }
  }

  /** Everything that a box promises, as far as a lone program can show it. */
  async function expectWhole(box: Box, program = 'tool'): Promise<void> {
    expect(await box.write(bytes({ 'in/a': 'here' }))).toEqual({ ok: true });
    const said = await run(box, [program, 'ü', '']);
    expect([said.launchError, said.exitCode, said.stdout.toString()]).toEqual([null, 0, 'ü\n\n']);
    const files = (await box.read({ maxBytes: 1000, maxEntries: 10 })).files;
    expect([...files].map(([name, content]) => [name, content.toString()])).toEqual([
      ['in/a', 'here'],
      ['made', 'by tool'],
    ]);
    await box.reset();
    expect((await box.read({ maxBytes: 1000, maxEntries: 10 })).files.size).toBe(0);
  }

  test('of one static program, without a shell, a C library, Python, users or a /tmp, makes a box', async () => {
    await within(await imageOf(() => {}), async (box) => {
      await expectWhole(box);
      for (const program of ['sh', '/bin/sh', 'python3', '/usr/bin/python3'])
        expect(await run(box, [program, '-c', 'true'])).toMatchObject({
          cause: 'launch',
          launchError: { code: 'ENOENT' },
        });
    });
  });

  test.each([
    // what the task needs and the image lacks is the task's fault, and nobody's reward
    ['sql-task', { schema_sql: '', seed_sql: '', task: '', expected_rows: [[1]] }, 'SELECT 1', 'environment_error'],
    [
      'code-task',
      {
        files: { 'a.py': '' },
        task: '',
        check: { command: ['python3', 'check.py'], files: { 'check.py': 'import a' } },
      },
      { 'a.py': 'x = 1' },
      'environment_error',
    ],
    ['code-task', { files: { a: '' }, task: '', check: { command: ['make'] } }, { a: '1' }, 'environment_error'],
    // what the action asks for in vain is its own
    ['command', { files: {}, task: '', expected_stdout: '' }, ['sh', '-c', 'true'], -0.1],
    ['command', { files: {}, task: '', expected_stdout: 'hello' }, ['tool', 'hello'], 1],
    ['terminal', { files: {}, task: '', goal: { kind: 'has_file', path: 'made' } }, ['/bin/tool'], 1],
  ])('without Python or a shell gives a %s a clear outcome (%j)', async (name, config, action, outcome) => {
    await within(await imageOf(() => {}), async (box) => {
      const environment = build(name, config, { box: async () => box });
      const episode = await playActions(environment, [toValue(action)]);
      expect(episode.status === 'completed' ? episode.totalReward : episode.cause).toBe(outcome);
    });
  });

  test('with another C library makes a box', async () => {
    const image = await imageOf((root) => {
      mkdirSync(path.join(root, 'lib'));
      const loader = process.arch === 'arm64' ? 'ld-musl-aarch64.so.1' : 'ld-musl-x86_64.so.1';
      cpSync(`/lib/${loader}`, path.join(root, 'lib', loader), { dereference: true });
      cpSync(path.join(folder, 'dynamic'), path.join(root, 'bin', 'dynamic'));
    });
    await within(image, (box) => expectWhole(box, 'dynamic'));
  });

  test('that brings a start, a user, a folder, a health check, a trigger and variables of its own has no say in its box', async () => {
    const image = await imageOf(
      () => {},
      'ENTRYPOINT ["/bin/false", "never"]',
      'CMD ["no"]',
      'USER nobody:nogroup',
      'WORKDIR /not/there',
      'HEALTHCHECK --interval=1s CMD /bin/false',
      'ONBUILD RUN /bin/false',
      'ENV LD_PRELOAD=/evil.so SECRET=x',
      'EXPOSE 80',
      'LABEL rollout-farm.farm=somebody',
    );
    await within(image, async (box) => {
      await expectWhole(box);
      const id = await docker('ps', '-q', '--filter', `label=rollout-farm.farm=${LABELS.farm}`);
      const [facts] = JSON.parse(await docker('inspect', id));
      expect(facts.State.Health).toBeUndefined();
      expect(facts.Config).toMatchObject({ User: '0:0', Labels: { 'rollout-farm.farm': LABELS.farm } });
    });
    // the same with a real system in it: none of its variables but PATH reaches a command
    await within(await pythonWith('USER daemon', 'WORKDIR /etc', 'ENV SECRET=x PYTHONPATH=/evil'), async (box) => {
      const seen = await python(box, 'import os, sys; print(os.getcwd(), sorted(os.environ), "/evil" in sys.path)');
      expect(seen.stdout.toString()).toBe(
        "/work ['HOME', 'LANG', 'PATH', 'PYTHONDONTWRITEBYTECODE', 'PYTHONHASHSEED'] False\n",
      );
    });
  });

  test('with files of its own in our folders makes a clean box', async () => {
    const image = await imageOf((root) => {
      for (const name of ['work', 'tmp', 'dev/shm']) {
        mkdirSync(path.join(root, name, 'old'), { recursive: true });
        writeFileSync(path.join(root, name, 'old', 'f'), 'x');
      }
      mkdirSync(path.join(root, '.rollout-farm-runner-old'));
      writeFileSync(path.join(root, '.rollout-farm-runner'), 'not a program');
    });
    await within(image, async (box) => {
      expect((await box.read({ maxBytes: 1000, maxEntries: 10 })).files.size).toBe(0);
      await expectWhole(box);
    });
  });

  test.each([
    [
      'a link where the runner goes',
      (root: string) => symlinkSync('/bin/tool', path.join(root, '.rollout-farm-runner')),
    ],
    ['a folder there', (root: string) => mkdirSync(path.join(root, '.rollout-farm-runner', 'a'), { recursive: true })],
  ])('with %s makes a box', async (_, lay) => {
    await within(await imageOf(lay), (box) => expectWhole(box));
  });

  test.each([
    ['a link elsewhere', 'work', (at: string) => symlinkSync('/etc', at)],
    ['a link out of it', 'work', (at: string) => symlinkSync('../../../../var', at)],
    ['a file', 'work', (at: string) => writeFileSync(at, 'x')],
    ['a link for a /tmp', 'tmp', (at: string) => symlinkSync('/bin', at)],
  ])('with %s where files are to go is refused before anything starts', async (_, name, lay) => {
    const image = await imageOf((root) => {
      mkdirSync(path.join(root, 'etc'));
      lay(path.join(root, name));
    });
    await expect(driver.prepare(image)).rejects.toMatchObject({
      code: 'image_unusable',
      exit: 3,
      message: expect.stringContaining(`/${name} is no folder`),
    });
  });

  test.each([
    ['a folder', (at: string) => mkdirSync(at)],
    ['a pipe', (at: string) => makePipe(at)],
    [
      'a link to a pipe',
      (at: string) => {
        makePipe(`${at}.d`);
        symlinkSync(`${path.basename(at)}.d`, at);
      },
    ],
    ['a link to itself', (at: string) => symlinkSync(path.basename(at), at)],
  ])('with %s where the engine reads who is who is refused before anything starts', async (_, lay) => {
    for (const name of ['passwd', 'group']) {
      const image = await imageOf((root) => {
        mkdirSync(path.join(root, 'etc'));
        lay(path.join(root, 'etc', name));
      });
      await expect(driver.prepare(image)).rejects.toMatchObject({
        code: 'image_unusable',
        exit: 3,
        message: expect.stringMatching(new RegExp(`"${image}" cannot be made fit for boxes \\(look.* /etc/${name}`)),
      });
    }
  });

  test.each<[string, (at: string) => void]>([
    ['no text', (at) => writeFileSync(at, Buffer.alloc(100_000, '\xff:\0\n', 'latin1'))],
    [
      'a link to a file',
      (at) => {
        writeFileSync(`${at}.d`, 'root:x:0:0::/:/bin/tool\n');
        symlinkSync(`/etc/${path.basename(at)}.d`, at);
      },
    ],
    ['a link to nothing', (at) => symlinkSync('/not/there', at)],
    ['closed to everybody', (at) => writeFileSync(at, '', { mode: 0 })],
  ])('with %s where the engine reads who is who makes a box', async (_, lay) => {
    const image = await imageOf((root) => {
      mkdirSync(path.join(root, 'etc'));
      for (const name of ['passwd', 'group']) lay(path.join(root, 'etc', name));
    });
    await within(image, (box) => expectWhole(box));
  });

  test('that the engine cannot start is named, with what the engine says', async () => {
    const image = await imageOf((root) => {
      mkdirSync(path.join(root, 'etc'));
      writeFileSync(path.join(root, 'etc', 'passwd'), 'x'.repeat(100_000));
    });
    await expect(driver.open({ ...LIMITS, image }, LABELS, never)).rejects.toMatchObject({
      phase: 'start',
      signature: 'start:start',
      message: expect.stringMatching(new RegExp(`^no box of the image "${image}": start: .*too long`)),
    });
  });

  test.each([
    '',
    '/',
    'x//y',
    '//x/y',
    'x/../y',
    '..',
    'X',
    'x:',
    'x@',
    'x?y=1',
    'x#y',
    'x%2fy',
    'x\ny',
    'x y',
    'ü',
    '\0',
    '<none>',
    'x'.repeat(600),
  ])('of a name that none can have is refused by that name (%j)', async (name) => {
    await expect(driver.prepare(name)).rejects.toMatchObject({
      code: 'image_unusable',
      exit: 3,
      message: expect.stringContaining(JSON.stringify(name.slice(0, 100))),
      hint: expect.stringContaining('docker images'),
    });
    await expect(driver.open({ ...LIMITS, image: name }, LABELS, never)).rejects.toMatchObject({ phase: 'start' });
  });

  test('of a name that none has is refused with how to get it', async () => {
    for (const name of ['x', 'json', 'x/json', 'localhost:1/x:y', 'a'.repeat(64), `sha256:${'0'.repeat(64)}`])
      await expect(driver.prepare(name)).rejects.toMatchObject({
        code: 'image_missing',
        exit: 3,
        hint: expect.stringContaining(name),
      });
  });

  test('for another machine is refused before anything starts', async () => {
    for (const [architecture, os] of [
      [process.arch === 'arm64' ? 'amd64' : 'arm64', 'linux'],
      ['386', 'linux'],
      ['s390x', 'linux'],
    ] as const) {
      const name = await imageFor(architecture, os);
      await expect(driver.prepare(name)).rejects.toMatchObject({
        code: 'image_unusable',
        exit: 3,
        message: expect.stringContaining(`${os}/${architecture}`),
      });
    }
  });

  /** Nothing here can build for another machine, so an archive is written that says so of itself. */
  async function imageFor(architecture: string, os: string): Promise<string> {
    const name = `rollout-farm-test-image:${architecture}-${process.pid}`;
    const root = mkdtempSync(path.join(folder, 'foreign-'));
    await exec('tar', ['-C', folder, '-cf', path.join(root, 'layer.tar'), 'static']);
    const digest = createHash('sha256')
      .update(readFileSync(path.join(root, 'layer.tar')))
      .digest('hex');
    const config = { architecture, os, config: {}, rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] } };
    writeFileSync(path.join(root, 'config.json'), JSON.stringify(config));
    const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }];
    writeFileSync(path.join(root, 'manifest.json'), JSON.stringify(manifest));
    await exec('tar', ['-C', root, '-cf', `${root}.tar`, 'manifest.json', 'config.json', 'layer.tar']);
    made.push(name);
    await docker('load', '-q', '-i', `${root}.tar`);
    return name;
  }

  test('that goes away between two boxes is named; one that comes back works', async () => {
    const image = await imageOf(() => {});
    await within(image, (box) => expectWhole(box));
    const id = await docker('image', 'inspect', '--format', '{{.Id}}', image);
    const tar = path.join(folder, 'kept.tar');
    await docker('save', '-o', tar, image);
    await docker('rmi', '-f', `rollout-farm/box:${id.slice(7, 19)}-${runnerHash()}`);
    await docker('rmi', '-f', image);
    await expect(driver.open({ ...LIMITS, image }, LABELS, never)).rejects.toMatchObject({
      phase: 'start',
      blame: 'engine',
    });
    await expect(driver.prepare(image)).rejects.toMatchObject({ code: 'image_missing', exit: 3 });
    await docker('load', '-q', '-i', tar);
    await within(image, (box) => expectWhole(box));
  });
});

describe('a command that cannot be', () => {
  const driver = createDockerDriver({ dockerHost: null });
  let box: Box;
  beforeAll(async () => {
    box = await driver.open(LIMITS, LABELS, never);
  });
  afterEach(() => box.reset());
  afterAll(() => driver.close());

  test.each([
    ['not executable', 'echo "#!/bin/sh" > c; chmod 644 c', 'EACCES'],
    ['a folder', 'mkdir c', 'EACCES'],
    ['a link to itself', 'ln -s c c', 'ELOOP'],
    ['a link to nothing', 'ln -s nothing c', 'ENOENT'],
    ['empty', ': > c; chmod 755 c', 'ENOEXEC'],
    [
      'no program',
      'head -c 1000 /dev/urandom > c; printf "\\0\\0\\0\\0" | dd of=c conv=notrunc 2>/dev/null; chmod 755 c',
      'ENOEXEC',
    ],
    ['a script without its interpreter', 'printf "#!/not/there\\n" > c; chmod 755 c', 'ENOENT'],
    ['a script that is its own interpreter', 'printf "#!/work/c\\n" > c; chmod 755 c', 'ELOOP'],
    ['a pipe', 'mkfifo c; chmod 755 c', 'EACCES'],
    ['below a file', ': > c', 'ENOTDIR'],
  ])('because it is %s says which error the kernel has', async (what, make, code) => {
    expect(await run(box, ['sh', '-c', make])).toMatchObject({ cause: 'exit', exitCode: 0 });
    const result = await run(box, [what === 'below a file' ? './c/d' : './c']);
    expect(result).toMatchObject({ cause: 'launch', exitCode: -1, launchError: { code } });
    expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', exitCode: 0 });
  });

  test.each([
    ['is closed', 'chmod 000 .', 'EACCES'],
    ['is gone under a command', 'mkdir d && cd d && rmdir ../d && true', null],
    ['is to be removed', 'rmdir /work || mv /work /tmp/w; true', null],
    ['is full of what nobody can enter', 'mkdir a && chmod 000 a', null],
  ])('when its work folder %s, has a clear outcome, and the box can be made new', async (_, spoil, code) => {
    expect(await run(box, ['sh', '-c', spoil])).toMatchObject({ cause: 'exit', exitCode: 0 });
    const next = await run(box, ['pwd']);
    if (code === null) expect(next.stdout.toString()).toBe('/work\n');
    else expect(next).toMatchObject({ cause: 'launch', launchError: { code } });
    await box.reset();
    expect((await run(box, ['pwd'])).stdout.toString()).toBe('/work\n');
  });

  test('prints bytes of every kind, and they come out as they are', async () => {
    const all = Buffer.from(Array.from({ length: 65_536 }, (_, i) => (i * 7 + (i >> 8)) & 255));
    const result = await run(box, ['sh', '-c', 'cat > f; cat f; cat f >&2'], { stdin: all });
    expect([result.stdout.equals(all), result.stderr.equals(all)]).toEqual([true, true]);
  });
});
