// A completion and its payload. Where the library's parser raises, ours finds no payload.

import type { Value, ValueMap } from '../../src/shared/json/value.ts';
import { parseCompletion, parsedToValue } from '../../src/workers/verify/parser.ts';
import { parserConfig } from './reference-values.ts';
import type { VectorCase } from './vector-file.ts';
import { sameAsReference } from './vector-file.ts';
import { judge, type Verdict } from './verdict.ts';

export function runParser(one: VectorCase): Verdict {
  const completion = one.in.get('completion') as Value;
  const prompt = (one.in.get('prompt') ?? null) as Value;
  const config = parserConfig(one.in.get('parser') as string, one.in.get('parser_args') as ValueMap);
  const parsed = config && typeof completion === 'string' ? parseCompletion(config, null, completion) : null;
  if (one.out.has('raises'))
    return judge(one, false, 'a payload where the library raises', parsed ? [] : ['nothing-raises']);
  // The library keeps any prompt as it is; ours is text by then.
  const ours = parsed && parsedToValue(parsed).set('prompt', prompt);
  return judge(one, sameAsReference(ours, one.out.get('parsed') as Value), 'another payload');
}
