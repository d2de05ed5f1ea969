import { afterEach, describe, expect, it, vi } from 'vitest';
import { knownSecrets, readConfig, SECRET_NAMES } from '../../src/shared/config.ts';
import { forPeople, openLog, redactText } from '../../src/shared/log.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const CANARY = 'canary-0f9e8d7c';

/** What is written to stderr while `act` logs. */
function written(act: (log: ReturnType<typeof openLog>) => void, level: string | null = null): string {
  let text = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  act(openLog({ ...readConfig({}), logLevel: level }, 'rollout'));
  vi.restoreAllMocks();
  return text;
}

describe('a log line', () => {
  it('is one JSON object with time, role and all fields where stderr is no terminal', () => {
    const line = JSON.parse(written((log) => log.info({ run: 'r', group: 3, reward: -0.1 }, 'attempt')));
    expect(line).toMatchObject({ role: 'rollout', msg: 'attempt', run: 'r', group: 3, reward: -0.1, pid: process.pid });
    expect(line.time).toMatch(/^\d{4}-\d\d-\d\dT/);
  });

  it('stays one line whatever a text holds', () => {
    expect(written((log) => log.warn({ detail: 'one\ntwo\r\u2028three\u0000' }, 'x')).trimEnd()).not.toContain('\n');
  });

  it.each(SECRET_NAMES)('never holds what %s is, wherever it stands', (name) => {
    vi.stubEnv(name, CANARY);
    const text = written((log) => {
      log.info({ error: `401 for key ${CANARY}`, nested: { [CANARY]: [CANARY] } }, `asked with ${CANARY}`);
      log.error(new Error(`refused: ${CANARY}`));
    });
    expect(text).toContain('[redacted]');
    expect(text).not.toContain(CANARY);
  });

  it('is left out below the level, and an unknown level is info', () => {
    const both = (log: ReturnType<typeof openLog>): void => {
      log.info('one');
      log.debug('two');
    };
    expect(written(both, 'warn')).toBe('');
    expect(written(both, 'debug')).toMatch(/one.*\n.*two/);
    expect(written(both, 'loud')).toMatch(/one/);
    expect(written(both, 'loud')).not.toMatch(/two/);
  });
});

describe('secrets', () => {
  it('are every key of a list, and the passwords of addresses, as written and decoded', () => {
    const secrets = knownSecrets({
      FARM_API_KEY: 'first-key,second-key',
      REDIS_URL: 'redis://:pass%2Fword@host:6379',
      AMBERTRACE_BASE_URL: 'no url',
    });
    expect(redactText('first-key second-key pass/word pass%2Fword', secrets)).not.toMatch(/first|second|pass/);
  });

  it('that are too short to be any are not hunted for', () => {
    expect(redactText('abc', knownSecrets({ FARM_API_KEY: 'a' }))).toBe('abc');
  });
});

describe('a line for people', () => {
  it('has the time of day, level, role, message and the fields', () => {
    const line = JSON.stringify({
      level: 30,
      time: '2026-01-02T03:04:05.678Z',
      role: 'rollout',
      pid: 1,
      msg: 'attempt',
      run: 'r',
      diagnostics: ['timeout'],
    });
    expect(forPeople(line)).toBe('03:04:05 info rollout  attempt run=r diagnostics=["timeout"]\n');
  });

  it('is the line itself where that is no JSON', () => {
    expect(forPeople('half a li')).toBe('half a li');
  });
});
