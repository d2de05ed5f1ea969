// Redis scripts are called from far away, by position: what each takes and gives stands at its top, and the keys that a
// folder's scripts share in one of them.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const all = readdirSync('src', { recursive: true }).map((name) => path.join('src', String(name)));
const files = all.filter((name) => name.endsWith('.lua')).sort();
const header = (file: string): string => /^(?:--.*\n)*/.exec(readFileSync(file, 'utf8'))?.[0] ?? '';

/** Files that stand in front of others, and are called by nobody. */
function preludes(): Set<string> {
  const named = new Set<string>();
  for (const file of all.filter((name) => name.endsWith('.ts'))) {
    const text = readFileSync(file, 'utf8');
    if (!text.includes('loadScript(')) continue;
    const folder = path.dirname(file);
    const lists = [...text.matchAll(/prelude\w*\s*[:=]\s*\[([^\]]*)\]/gi)].map((m) => m[1] as string);
    for (const name of ['common', ...lists.join(',').matchAll(/'(\w+)'/g)].map((m) =>
      typeof m === 'string' ? m : m[1],
    ))
      named.add(path.join(folder, `${name}.lua`));
  }
  return named;
}

describe('a Redis script', () => {
  const shared = preludes();
  const called = files.filter((file) => !shared.has(file));

  it('is one of those that stand in front of others, or is called', () => {
    expect(called.length).toBeGreaterThan(30);
    expect([...shared].filter((file) => files.includes(file)).length).toBeGreaterThan(8);
  });

  it.each(called)('says what it takes and what it gives: %s', (file) => {
    expect(header(file)).toMatch(/^-- .*\n/);
    expect(header(file)).toMatch(/^-- ARGV {2}/m);
    expect(header(file)).toMatch(/^-- Gives /m);
  });

  it.each([...new Set(called.map((file) => path.dirname(file)))])(
    'has its keys described in its folder: %s',
    (folder) => {
      const told = files.filter((file) => path.dirname(file) === folder && /^-- .*\bkeys?\b/im.test(header(file)));
      expect(told).not.toEqual([]);
    },
  );
});
