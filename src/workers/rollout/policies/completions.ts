// A policy that plays one given completion: its text becomes the environment's action by the environment's own parser.
// A completion that is no text at all is played as it is, and earns what it earns.

import type { Environment } from '../../../shared/environment.ts';
import { isMap, type Value } from '../../../shared/json/value.ts';
import type { Policy } from '../policy.ts';
import { scriptedPolicy } from './scripted.ts';

export function completionPolicy(completion: Value, environment: Pick<Environment, 'parseCompletion'>): Policy {
  const text = completionText(completion);
  return scriptedPolicy([text === null ? completion : environment.parseCompletion(text)]);
}

/** The text of a completion: itself, or the contents of its messages, one after another. Null if it has none. */
function completionText(completion: Value): string | null {
  if (typeof completion === 'string') return completion;
  if (!Array.isArray(completion) || completion.length === 0) return null;
  const texts: string[] = [];
  for (const message of completion) {
    const content = isMap(message) ? message.get('content') : undefined;
    if (typeof content !== 'string') return null;
    texts.push(content);
  }
  return texts.join('\n');
}
