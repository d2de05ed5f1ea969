// What a worker may ask of the engine, call by call: what our own driver calls, and nothing else. Read from the request line
// alone; whether a container or an image is one of ours is for the gate to find out.

export type Asked =
  | { kind: 'refused'; why: string }
  | { kind: 'plain' }
  /** A new container: `body` decides (body.ts). */
  | { kind: 'create'; name: string | null }
  /** `removes`: also one that was made past this gate, if a farm's label is on it. */
  | { kind: 'container'; container: string; needs: 'ours' | 'box' | 'removable' }
  | { kind: 'image'; image: string };

export interface Judged {
  asked: Asked;
  /** What goes on to the engine in the place of what came: only keys that are known. */
  target: string;
  /** Whether the request's body goes on; no other does: older engines read more from a body than from its query. */
  withBody: boolean;
}

interface Route {
  method: string;
  path: RegExp;
  query: readonly string[];
  body?: true;
  judge(found: Record<string, string>, query: URLSearchParams): Asked;
}

const ID = '(?<id>[A-Za-z0-9][A-Za-z0-9_.-]*)';
/** No percent signs, no empty or dotted parts: what we read is what the engine reads. */
const IMAGE = '(?<image>[A-Za-z0-9][A-Za-z0-9_-]*(?:[./:@][A-Za-z0-9_-]+)*)';
const FARM_LABEL = 'rollout-farm.farm';
const BOX_IMAGE = 'rollout-farm/box';
const BOX_NAME = /^rollout-farm-[0-9a-f]{16}$/;

const plain = (): Asked => ({ kind: 'plain' });
const refused = (why: string): Asked => ({ kind: 'refused', why });
const ours =
  (needs: 'ours' | 'box' | 'removable' = 'ours') =>
  ({ id = '' }: Record<string, string>): Asked => ({ kind: 'container', container: id, needs });

const on = (method: string, path: string, query: readonly string[], judge: Route['judge'], body?: true): Route => ({
  method,
  path: new RegExp(`^(?:/v1\\.\\d{1,2})?${path}$`),
  query,
  judge,
  ...(body ? { body } : {}),
});

const ROUTES: readonly Route[] = [
  on('GET', '/_ping', [], plain),
  on('HEAD', '/_ping', [], plain),
  on('GET', '/info', [], plain),
  on('GET', `/images/${IMAGE}/json`, [], plain),
  on('GET', '/images/json', ['filters'], (_, query) =>
    filterOf(query, 'label', (label) => label.startsWith('rollout-farm.box='))
      ? plain()
      : refused('only images of boxes are listed'),
  ),
  on('DELETE', `/images/${IMAGE}`, [], ({ image = '' }) => ({ kind: 'image', image })),
  on('POST', `/images/${IMAGE}/tag`, ['repo', 'tag'], ({ image = '' }, query) =>
    query.get('repo') === BOX_IMAGE ? { kind: 'image', image } : refused(`only ${BOX_IMAGE} is tagged`),
  ),
  on('GET', '/containers/json', ['all', 'filters'], (_, query) =>
    filterOf(query, 'label', (label) => label.startsWith(`${FARM_LABEL}=`))
      ? plain()
      : refused('only containers of a farm are listed'),
  ),
  on('GET', '/events', ['since', 'until', 'filters'], (_, query) =>
    query.has('until') && filterOf(query, 'container', (name) => BOX_NAME.test(name))
      ? plain()
      : refused('only what befell a box is told'),
  ),
  on(
    'POST',
    '/containers/create',
    ['name'],
    (_, query) => {
      const name = query.get('name');
      return name === null || BOX_NAME.test(name)
        ? { kind: 'create', name }
        : refused('a container has a name of the farm’s, or none');
    },
    true,
  ),
  on('POST', '/commit', ['container', 'changes', 'pause'], (_, query) => ours()({ id: query.get('container') ?? '' })),
  on('POST', `/containers/${ID}/attach`, ['stream', 'stdin', 'stdout', 'stderr'], ours('box')),
  on('POST', `/containers/${ID}/start`, [], ours('box')),
  on('POST', `/containers/${ID}/wait`, ['condition'], ours('box')),
  on('GET', `/containers/${ID}/json`, [], ours('removable')),
  on('GET', `/containers/${ID}/archive`, ['path'], ours()),
  on('HEAD', `/containers/${ID}/archive`, ['path'], ours()),
  on('PUT', `/containers/${ID}/archive`, ['path'], ours(), true),
  on('DELETE', `/containers/${ID}`, ['force', 'v'], ours('removable')),
];

/** Every query key but these comes once: of two values the engine and we might read different ones. */
const SEVERAL = 'changes';

export function judge(method: string, url: string): Judged {
  const [path = '', search = ''] = splitOnce(url, '?');
  const given = new URLSearchParams(search);
  for (const route of ROUTES) {
    const found = route.method === method ? route.path.exec(path) : null;
    if (found === null) continue;
    const query = new URLSearchParams();
    for (const [key, value] of given) {
      if (!route.query.includes(key)) continue;
      if (query.has(key) && key !== SEVERAL) return refuse(`${key} is given twice`);
      query.append(key, value);
    }
    const asked = route.judge(found.groups ?? {}, query);
    // An engine's own version decides what the call means, not one that the caller names.
    const bare = path.replace(/^\/v1\.\d{1,2}(?=\/)/, '');
    const text = query.toString();
    return { asked, target: text === '' ? bare : `${bare}?${text}`, withBody: route.body === true };
  }
  return refuse(`${method} ${path.slice(0, 80)} is no call of the farm's`);
}

function refuse(why: string): Judged {
  return { asked: refused(why), target: '', withBody: false };
}

/** Whether `filters` asks for at least one `name`, and each of them is `allowed`: the engine takes them as alternatives or all at once. */
function filterOf(query: URLSearchParams, name: string, allowed: (value: string) => boolean): boolean {
  try {
    const filters: unknown = JSON.parse(query.get('filters') ?? '{}');
    const values: unknown = (filters as Record<string, unknown>)[name];
    return Array.isArray(values) && values.length > 0 && values.every((one) => typeof one === 'string' && allowed(one));
  } catch {
    return false;
  }
}

function splitOnce(text: string, by: string): [string, string] {
  const at = text.indexOf(by);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
