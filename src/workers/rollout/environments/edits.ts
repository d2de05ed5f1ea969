// What an action of `code-task` edits: crucible updates its files by `dict(action)`, and takes what that takes.

import { isMap, type Value } from '../../../shared/json/value.ts';
import { repr, typeName } from '../../../shared/python/text.ts';

type Edits = { ok: true; edits: [string, Value][] } | { ok: false; error: string };

/** `dict(action)`: an object, or a list of pairs (of two items, or of two characters), with text for keys. */
export function editsOf(action: Value): Edits {
  if (isMap(action)) return { ok: true, edits: [...action] };
  if (typeof action !== 'string' && !Array.isArray(action)) {
    return { ok: false, error: `'${typeName(action)}' object is not iterable` };
  }
  if (typeof action === 'string') {
    if (action === '') return { ok: true, edits: [] };
    return { ok: false, error: 'dictionary update sequence element #0 has length 1; 2 is required' };
  }
  const edits: [string, Value][] = [];
  for (const [i, item] of action.entries()) {
    const pair: Value[] | null =
      typeof item === 'string'
        ? [...item.slice(0, 6)]
        : Array.isArray(item)
          ? item
          : isMap(item)
            ? [...item.keys()]
            : null;
    if (!pair) return { ok: false, error: `cannot convert dictionary update sequence element #${i} to a sequence` };
    const length = typeof item === 'string' && item.length > 6 ? [...item].length : pair.length;
    if (length !== 2) {
      return { ok: false, error: `dictionary update sequence element #${i} has length ${length}; 2 is required` };
    }
    const [path, content] = pair as [Value, Value];
    if (typeof path !== 'string')
      return { ok: false, error: `a path must be text, not ${typeName(path)} ${repr(path).slice(0, 80)}` };
    edits.push([path, content]);
  }
  return { ok: true, edits };
}
