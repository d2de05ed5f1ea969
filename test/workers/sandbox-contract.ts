// What every sandbox driver promises (src/shared/sandbox.ts), stated once and run on each of them.
// The hostile part, which only a hardened box can keep, is in sandbox-hostile.slow.test.ts.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Box,
  type Command,
  type CommandResult,
  DEFAULT_LIMITS,
  type SandboxDriver,
} from '../../src/shared/sandbox.ts';
import { spoken } from '../support/spoken.ts';

export const LIMITS = DEFAULT_LIMITS;

export const LABELS = { farm: `test-sandbox-${process.pid}`, worker: `w-${process.pid}`, run: 'r', member: '0-0' };

export function bytes(files: Record<string, string>): Map<string, Uint8Array> {
  return new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)]));
}

export function run(box: Box, argv: string[], over: Partial<Command> = {}): Promise<CommandResult> {
  return box.run({ argv, timeoutMs: 60_000, outputBytes: 256 * 1024, ...over });
}

export function python(box: Box, code: string, over: Partial<Command> = {}): Promise<CommandResult> {
  return run(box, ['python3', '-c', code], over);
}

const CAPS = { maxBytes: 10_000_000, maxEntries: 1_000 };

/** Double-forked, a session of its own, deaf to every signal it may ignore, no descriptor left; seen to live. */
const DAEMON = `
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for n in range(1, 65):
            try: signal.signal(n, signal.SIG_IGN)
            except (OSError, ValueError): pass
        for fd in range(64):
            try: os.close(fd)
            except OSError: pass
        while True:
            try:
                with open('alive', 'a') as f: f.write('x')
            except OSError: pass
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists('alive') or os.path.getsize('alive') == 0: time.sleep(0.01)
`;

/** `words`: what another kernel than Linux may say instead; `startMs`: what a program may need there before its first line. */
export function sandboxContract(
  name: string,
  make: () => SandboxDriver,
  { words = {}, startMs = 0 }: { words?: Readonly<Record<string, string[]>>; startMs?: number } = {},
): void {
  describe(`${name}: the sandbox contract`, () => {
    let driver: SandboxDriver;
    let box: Box;
    const open = () => driver.open(LIMITS, LABELS, new AbortController().signal);

    beforeAll(async () => {
      driver = make();
      await driver.prepare(LIMITS.image);
      box = await open();
    });
    afterAll(() => driver.close());

    test('a command that ends by itself gives its status and both streams', async () => {
      const result = await run(box, ['sh', '-c', 'echo out; echo err >&2; exit 7']);
      expect(result).toMatchObject({ cause: 'exit', exitCode: 7, launchError: null, stdoutBytes: 4, stderrBytes: 4 });
      expect([result.stdout.toString(), result.stderr.toString()]).toEqual(['out\n', 'err\n']);
      expect(result.wallMs).toBeGreaterThan(0);
    });

    test('a signal is told from a status', async () => {
      const result = await run(box, ['sh', '-c', 'kill -SEGV $$']);
      expect(result).toMatchObject({ cause: 'signal', exitCode: -11 });
    });

    test.each([
      ['no argument at all', [], 'EINVAL'],
      ['an empty program name', ['', 'a'], 'ENOENT'],
      ['a NUL in an argument', ['echo', 'a\0b'], 'EINVAL'],
      ['a lone surrogate', ['echo', '\ud800'], 'EILSEQ'],
      ['a program that is not there', ['no-such-program'], 'ENOENT'],
      ['a folder', ['/'], 'EACCES'],
      ['an argument longer than the kernel takes', ['echo', 'x'.repeat(200_000)], 'E2BIG'],
      ['more arguments than could ever be sent', ['echo', ...Array<string>(40).fill('x'.repeat(100_000))], 'E2BIG'],
    ])('%s is a launch error in the result', async (_, argv, code) => {
      const result = await run(box, argv);
      expect(result).toMatchObject({ cause: 'launch', exitCode: -1 });
      expect(words[code] ?? [code]).toContain(result.launchError?.code);
    });

    test('no shell stands between: arguments arrive as they are', async () => {
      const result = await run(box, ['printf', '%s|', '$HOME', '*', '; ls', 'ü', '']);
      expect(result.stdout.toString()).toBe('$HOME|*|; ls|ü||');
    });

    test('stdin arrives whole, and nobody has to read it', async () => {
      const input = Buffer.alloc(1_000_000, 'abcdefg');
      const counted = await run(box, ['sha256sum'], { stdin: input });
      const { createHash } = await import('node:crypto');
      expect(counted.stdout.toString()).toContain(createHash('sha256').update(input).digest('hex'));
      expect(await run(box, ['true'], { stdin: input })).toMatchObject({ cause: 'exit', exitCode: 0 });
      expect((await run(box, ['cat'])).stdoutBytes).toBe(0);
    });

    test('the environment is what the contract names and what was given', async () => {
      const names = async (over: Partial<Command>) =>
        (await run(box, ['env', '-0'], over)).stdout
          .toString()
          .split('\0')
          .filter((pair) => pair !== '')
          .sort();
      const plain = await names({});
      expect(plain.map((pair) => pair.split('=')[0])).toEqual([
        'HOME',
        'LANG',
        'PATH',
        'PYTHONDONTWRITEBYTECODE',
        'PYTHONHASHSEED',
      ]);
      expect(plain).toContain('PYTHONHASHSEED=0');
      expect(await names({ env: { ADDED: 'é=1', LANG: 'C' } })).toEqual(
        expect.arrayContaining(['ADDED=é=1', 'LANG=C']),
      );
    });

    test('at its deadline everything is killed, and what was written by then is kept', async () => {
      const code = `${DAEMON}\nprint('before', flush=True)\ntime.sleep(600)`;
      const result = await spoken(startMs + 700, async (timeoutMs) => {
        const started = performance.now();
        const ended = await python(box, code, { timeoutMs });
        expect(performance.now() - started).toBeLessThan(timeoutMs + 40_000);
        return ended;
      });
      expect(result).toMatchObject({ cause: 'timeout', exitCode: -1 });
      expect(result.stdout.toString()).toBe('before\n');
      await expectStill(box);
    });

    test('what a command leaves running is dead before its result is there', async () => {
      const result = await python(box, DAEMON);
      expect(result).toMatchObject({ cause: 'exit', exitCode: 0 });
      await expectStill(box);
    });

    test('a child that holds stdout open delays nothing', async () => {
      const result = await run(box, ['sh', '-c', 'sleep 600 & echo done']);
      expect(result).toMatchObject({ cause: 'exit', exitCode: 0 });
      expect(result.stdout.toString()).toBe('done\n');
    });

    test('a command that closes its output and goes on is still bounded', async () => {
      const result = await python(box, 'import os, time\nfor fd in (0, 1, 2): os.close(fd)\ntime.sleep(60)', {
        timeoutMs: 500,
      });
      expect(result.cause).toBe('timeout');
    });

    test('output is cut while it streams: the head is kept, all of it is counted, memory does not grow', async () => {
      const size = 300_000_000;
      const before = process.memoryUsage().rss;
      const result = await run(box, ['sh', '-c', `head -c ${size} /dev/zero; head -c ${size} /dev/zero >&2`], {
        timeoutMs: 120_000,
        outputBytes: 1_000,
      });
      expect(result).toMatchObject({ cause: 'exit', stdoutBytes: size, stderrBytes: size });
      expect([result.stdout.length, result.stderr.length]).toEqual([1_000, 1_000]);
      expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
    });

    test('bytes that are no text come out as they are', async () => {
      const result = await run(box, ['printf', '\\377\\000\\200']);
      expect([...result.stdout]).toEqual([255, 0, 128]);
    });

    test('an aborted command ends at once and throws the reason', async () => {
      const control = new AbortController();
      const started = performance.now();
      setTimeout(() => control.abort(new Error('no more')), 200);
      const long = { timeoutMs: 600_000, signal: control.signal };
      await expect(run(box, ['sleep', '600'], long)).rejects.toThrow('no more');
      expect(performance.now() - started).toBeLessThan(startMs + 30_000);
      expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', exitCode: 0 });
    });

    test('files go in and come out as bytes, in code-point order, with odd names', async () => {
      await box.reset();
      const files = bytes({
        'a.txt': 'one\n',
        'deep/er/b': '',
        './x/../c': 'kept',
        'new\nline ü -rf \u{1f600}': 'odd',
        '\uffee': 'bmp',
        'raw-\udcff': 'no UTF-8',
      });
      files.set('big', Buffer.alloc(3_000_000, 7));
      expect(await box.write(files)).toEqual({ ok: true });
      const seen = await run(box, ['sh', '-c', 'cat a.txt c; echo raw-* | od -c | head -1']);
      expect(seen.stdout.toString()).toMatch(/^one\nkept.*377/s);
      const listing = await box.read(CAPS);
      expect([...listing.files.keys()]).toEqual([
        'a.txt',
        'big',
        'c',
        'deep/er/b',
        'new\nline ü -rf \u{1f600}',
        'raw-\udcff',
        '\uffee',
      ]);
      expect(listing.truncated).toBe(false);
      expect(listing.files.get('big')?.equals(Buffer.alloc(3_000_000, 7))).toBe(true);
    });

    test.each(['/etc/x', '../x', 'a/../../x', '..'])(
      'the path %s leaves the work folder and is refused, before anything is written',
      async (path) => {
        await box.reset();
        expect(await box.write(bytes({ first: '1', [path]: 'x' }))).toMatchObject({
          ok: false,
          path,
          reason: 'escape',
        });
        expect((await box.read(CAPS)).files.size).toBe(0);
      },
    );

    test.each(['', '.', 'a\0b', '\ud800'])('the path %j names no file and is refused', async (path) => {
      expect(await box.write(bytes({ [path]: 'x' }))).toMatchObject({ ok: false, path, reason: 'other' });
    });

    test('links are neither followed on writing nor on reading', async () => {
      await box.reset();
      await run(box, [
        'sh',
        '-c',
        'mkdir real; ln -s real link; ln -s /etc out; ln -s real/x file; ln -s /etc/passwd p',
      ]);
      expect(await box.write(bytes({ 'link/a': 'x' }))).toMatchObject({ ok: false, path: 'link/a', reason: 'escape' });
      expect(await box.write(bytes({ 'out/a': 'x' }))).toMatchObject({ ok: false, reason: 'escape' });
      expect(await box.write(bytes({ file: 'itself' }))).toEqual({ ok: true });
      const listing = await box.read(CAPS);
      expect([...listing.files].map(([path, content]) => [path, content.toString()])).toEqual([['file', 'itself']]);
    });

    test('a folder where a file should go, and a file where a folder should, are told', async () => {
      await box.reset();
      expect(await box.write(bytes({ 'a/b': '1' }))).toEqual({ ok: true });
      expect(await box.write(bytes({ a: '1' }))).toMatchObject({ ok: false, path: 'a', reason: 'other' });
      expect(await box.write(bytes({ 'a/b/c': '1' }))).toMatchObject({ ok: false, path: 'a/b/c', reason: 'other' });
    });

    test('a file that is written again keeps its mode; a pipe gives way and is never waited for', async () => {
      await box.reset();
      await run(box, ['sh', '-c', 'echo old > a; chmod 755 a; mkfifo pipe']);
      expect((await box.read(CAPS)).files.size).toBe(1);
      expect(await box.write(bytes({ a: 'new', pipe: 'file' }))).toEqual({ ok: true });
      expect((await run(box, ['find', 'a', 'pipe', '-printf', '%m %y\n'])).stdout.toString()).toBe('755 f\n644 f\n');
    });

    test('a listing is cut at its caps, the same way each time', async () => {
      await box.reset();
      await box.write(bytes({ a: 'x'.repeat(10), b: 'x'.repeat(100), c: 'x'.repeat(10), d: '' }));
      const cutBytes = await box.read({ maxBytes: 30, maxEntries: 10 });
      expect([[...cutBytes.files.keys()], cutBytes.truncated]).toEqual([['a', 'c', 'd'], true]);
      const cutEntries = await box.read({ maxBytes: 1000, maxEntries: 2 });
      expect([[...cutEntries.files.keys()], cutEntries.truncated]).toEqual([['a', 'b'], true]);
    });

    test('a reset leaves no process and no file', async () => {
      await box.write(bytes({ 'x/y/z': '1' }));
      await run(box, ['sh', '-c', 'mkdir -p a/b; chmod 000 a']);
      await box.reset();
      expect(await box.read(CAPS)).toEqual({ files: new Map(), truncated: false });
      expect((await run(box, ['ls', '-A'])).stdout.toString()).toBe('');
    });

    test('commands run in turn, also when asked for at once', async () => {
      await box.reset();
      const all = [1, 2, 3].map((n) => run(box, ['sh', '-c', `echo b${n} >> log; sleep 0.05; echo e${n} >> log`]));
      await Promise.all(all);
      const log = (await box.read(CAPS)).files.get('log')?.toString();
      expect(log).toBe('b1\ne1\nb2\ne2\nb3\ne3\n');
    });

    test('a closed box says that it is lost; closing again is nothing', async () => {
      const other = await open();
      const running = run(other, ['sleep', '60']);
      running.catch(() => {});
      await other.close();
      await other.close();
      await expect(running).rejects.toThrow();
      await expect(run(other, ['true'])).rejects.toThrow();
    });

    test('an open that is aborted throws the reason', async () => {
      const control = new AbortController();
      control.abort(new Error('not wanted'));
      await expect(driver.open(LIMITS, LABELS, control.signal)).rejects.toThrow('not wanted');
    });

    /** Nothing writes into the work folder any more. */
    async function expectStill(place: Box): Promise<void> {
      const size = async () => (await place.read(CAPS)).files.get('alive')?.length ?? 0;
      const first = await size();
      expect(first).toBeGreaterThan(0);
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(await size()).toBe(first);
      await place.reset();
    }
  });
}
