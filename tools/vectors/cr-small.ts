// Small parts of crucible's: Python's seeded integers, where a file key leads, and environments by name.

import { pyEqual, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { PyRandom } from '../../src/shared/python/random.ts';
import { layFiles } from '../../src/shared/safe-path.ts';
import { ENVIRONMENT_CONFIGS } from '../../src/shared/spec/environment-config.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, EQUAL, judge, notRun, type Verdict } from './verdict.ts';

export function runRandom(one: VectorCase): Verdict {
  const [low, high] = ['low', 'high'].map((name) => wholeNumber(one.in.get(name) as Value)) as [
    bigint | null,
    bigint | null,
  ];
  const draws = Number(one.in.get('draws') ?? 1n);
  let values: bigint[] | null = null;
  try {
    if (low !== null && high !== null) {
      const random = new PyRandom(one.in.get('seed') as Value);
      values = Array.from({ length: draws }, () => random.randint(low, high));
    }
  } catch {
    values = null;
  }
  if (one.out.has('raises') || !values) return judge(one, one.out.has('raises') && !values, `draws ${values}`);
  const theirs = one.out.get('values') ?? [one.out.get('value') as Value];
  return judge(one, sameAsReference(values, theirs), `draws ${values}`);
}

/** Bounds are ints, or floats that are whole. */
function wholeNumber(value: Value): bigint | null {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return BigInt(value);
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : null;
}

export function runMaterialize(one: VectorCase): Verdict {
  const files = [...(one.in.get('files') as ValueMap)];
  if (one.in.has('setup') || one.in.get('root_is_link') === true)
    return notRun('links and files that stand there before: a box begins empty');
  if (files.some(([key]) => /^\{ROOT\}(?:\/|$)|^\{BASE\}\/|(?:^|\/)\.\.\/root(?:\/|$)/.test(key)))
    return notRun("a path that names the library's scratch folder, where a box has none to name");
  const raises = one.out.get('raises') as ValueMap | undefined;
  if (/not (?:bytes|tuple)/.test(String(raises?.get('message')))) return notRun('content that JSON cannot carry');
  const laid = layFiles(files.map(([key, content]) => [key.replace('{ROOT}', '/scratch/root'), content] as const));
  if (laid.ok) {
    if (raises) return differ('laid, and the library raises');
    const tree = [...laid.files].map(([path, bytes]) => [`root/${path}`, bytes.toString()] as const);
    const theirs = [...(one.out.get('tree') as ValueMap)].filter(([, text]) => text !== null);
    return judge(one, pyEqual(new Map(tree), new Map(theirs)), 'other files');
  }
  if (!raises) return differ(`refused: ${laid.error}`);
  // What was written before a refusal stays there; here nothing is laid at all, and nothing rests on it.
  const refused = one.out.get('refused') === true;
  if (refused !== (laid.kind === 'refused')) return differ(`${laid.kind}: ${laid.error}`);
  const message = (raises.get('message') as string).replaceAll('<ROOT>', '/scratch/root');
  const same = laid.kind === 'refused' ? laid.error === message : laid.error.slice(0, 10) === message.slice(0, 10);
  return judge(one, same || /\$long/.test(String(raises.get('message'))), laid.error);
}

export function runRegistry(one: VectorCase): Verdict {
  if (!one.in.has('name')) {
    const names = (one.out.get('registered') ?? []) as Value[];
    return judge(
      one,
      names.every((name) => ENVIRONMENT_CONFIGS.has(name as string)),
      'an environment is missing',
    );
  }
  const kind = ENVIRONMENT_CONFIGS.get(one.in.get('name') as string);
  const config = one.in.get('config') as Value;
  const refused = !kind || kind.check(config).length > 0;
  if (one.out.has('raises')) return refused ? EQUAL : differ('made, and the library refuses it');
  if (refused) return differ('refused');
  if (kind.name !== one.out.get('name')) return differ('another name');
  return judge(
    one,
    sameAsReference(kind.resolve(config as ValueMap), one.out.get('config') as Value),
    'another config',
  );
}
