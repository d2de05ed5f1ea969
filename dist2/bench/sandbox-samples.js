// Small completion tasks in the manner of HumanEval, written for this benchmark: a function to complete, a hidden check,
// a right answer and a wrong one. Harmless, so that the bare subprocess beside us may run them too.
export const SAMPLES = [
    {
        name: 'running_maximum',
        right: `from itertools import accumulate


def running_maximum(numbers):
    return list(accumulate(numbers, max))
`,
        wrong: `def running_maximum(numbers):
    return sorted(numbers)
`,
        check: `    assert f([]) == []
    assert f([3, 1, 4, 1, 5]) == [3, 3, 4, 4, 5]
    assert f([-2, -3, -1]) == [-2, -2, -1]
    assert f(list(range(500))) == list(range(500))
`,
    },
    {
        name: 'words_by_length',
        right: `from collections import defaultdict


def words_by_length(text):
    groups = defaultdict(list)
    for word in text.split():
        groups[len(word)].append(word)
    return dict(groups)
`,
        wrong: `def words_by_length(text):
    return {len(word): [word] for word in text.split()}
`,
        check: `    assert f('') == {}
    assert f('a bb cc d') == {1: ['a', 'd'], 2: ['bb', 'cc']}
    assert f('one two three') == {3: ['one', 'two'], 5: ['three']}
`,
    },
    {
        name: 'balanced',
        right: `PAIRS = {')': '(', ']': '[', '}': '{'}


def balanced(text):
    opened = []
    for c in text:
        if c in PAIRS.values():
            opened.append(c)
        elif c in PAIRS and (not opened or opened.pop() != PAIRS[c]):
            return False
    return not opened
`,
        wrong: `def balanced(text):
    return all(text.count(a) == text.count(b) for a, b in ('()', '[]', '{}'))
`,
        check: `    assert f('') is True
    assert f('([]{})') is True
    assert f('(') is False
    assert f('([)]') is False
    assert f(')(') is False
    assert f('(' * 1000 + ')' * 1000) is True
`,
    },
    {
        name: 'primes_below',
        right: `def primes_below(n):
    sieve = bytearray([1]) * max(n, 2)
    sieve[0:2] = b'\\0\\0'
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            sieve[i * i::i] = bytes(len(range(i * i, len(sieve), i)))
    return [i for i in range(n) if sieve[i]]
`,
        wrong: `def primes_below(n):
    return [i for i in range(2, n) if i % 2 or i == 2]
`,
        check: `    assert f(0) == []
    assert f(3) == [2]
    assert f(20) == [2, 3, 5, 7, 11, 13, 17, 19]
    assert len(f(20000)) == 2262
`,
    },
    {
        name: 'merge_intervals',
        right: `def merge_intervals(intervals):
    merged = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return merged
`,
        wrong: `def merge_intervals(intervals):
    return [[min(a for a, _ in intervals), max(b for _, b in intervals)]]
`,
        check: `    assert f([]) == []
    assert f([[1, 3], [2, 6], [8, 10]]) == [[1, 6], [8, 10]]
    assert f([[5, 6], [1, 2], [2, 3]]) == [[1, 3], [5, 6]]
`,
    },
    {
        name: 'roman',
        right: `TABLE = [(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'), (50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]


def roman(n):
    text = ''
    for value, letters in TABLE:
        while n >= value:
            text += letters
            n -= value
    return text
`,
        wrong: `def roman(n):
    return 'M' * (n // 1000) + 'C' * (n // 100 % 10) + 'X' * (n // 10 % 10) + 'I' * (n % 10)
`,
        check: `    assert f(1) == 'I'
    assert f(4) == 'IV'
    assert f(1994) == 'MCMXCIV'
    assert f(2026) == 'MMXXVI'
`,
    },
    {
        name: 'shortest_path',
        right: `from collections import deque


def shortest_path(grid, start, end):
    seen, waiting = {start}, deque([(start, 0)])
    while waiting:
        (y, x), steps = waiting.popleft()
        if (y, x) == end:
            return steps
        for at in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
            if 0 <= at[0] < len(grid) and 0 <= at[1] < len(grid[0]) and grid[at[0]][at[1]] == '.' and at not in seen:
                seen.add(at)
                waiting.append((at, steps + 1))
    return None
`,
        wrong: `def shortest_path(grid, start, end):
    return abs(start[0] - end[0]) + abs(start[1] - end[1])
`,
        check: `    assert f(['...', '.#.', '...'], (0, 0), (2, 2)) == 4
    assert f(['.#.', '.#.', '...'], (0, 0), (0, 2)) == 6
    assert f(['.#.'], (0, 0), (0, 2)) is None
    assert f(['.' * 60] * 60, (0, 0), (59, 59)) == 118
`,
    },
    {
        name: 'caesar',
        right: `import string


def caesar(text, shift):
    low, up, n = string.ascii_lowercase, string.ascii_uppercase, shift % 26
    return text.translate(str.maketrans(low + up, low[n:] + low[:n] + up[n:] + up[:n]))
`,
        wrong: `def caesar(text, shift):
    return ''.join(chr(ord(c) + shift) for c in text)
`,
        check: `    assert f('abc', 1) == 'bcd'
    assert f('xyz', 3) == 'abc'
    assert f('Hello, World!', 13) == 'Uryyb, Jbeyq!'
    assert f(f('Round trip', 5), -5) == 'Round trip'
`,
    },
];
export function stubOf(name) {
    return `def ${name}(*args):\n    raise NotImplementedError\n`;
}
export function checkOf(sample) {
    return `from solution import ${sample.name}\n\n\ndef check(f):\n${sample.check}\n\ncheck(${sample.name})\n`;
}
