// Takes a secret out of a value that was read: its strings and the names in its maps. The raw text is not enough,
// since JSON can spell the same letters as escapes.

import { isMap, type Value } from '../../shared/json/value.ts';

export type Redact = (text: string) => string;

export function redactor(secret: string): Redact {
  return secret === '' ? (text) => text : (text) => text.replaceAll(secret, '[redacted]');
}

export function redactValue(value: Value, redact: Redact): Value {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redact));
  if (!isMap(value)) return value;
  return new Map([...value].map(([key, item]) => [redact(key), redactValue(item, redact)]));
}
