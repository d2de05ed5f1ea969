// What a script of the fleet answers: calls to make, a code for each key that was asked about, events, and names.

const NOTHING = Buffer.alloc(0);

export interface TakenItem {
  key: string;
  /** Sealed; empty where this process waits for it too, and has the query. */
  sealed: Buffer;
  tries: number;
  waitedMs: number;
}

export interface TakenCall {
  token: string;
  generation: number;
  single: boolean;
  /** Not yet to be made: it begins with the permit of a call of this process that ends well. */
  ahead: boolean;
  items: TakenItem[];
}

/** What a script answers for a key; the codes stand in state.lua. */
export interface Coded {
  code: string;
  value: Buffer;
}

export interface ExchangeReply {
  wakeMs: number;
  events: [string, string][];
  calls: TakenCall[];
  /** For each key that was asked about. */
  own: Coded[];
  /** Other processes that hold permits, or permits, where that was asked. */
  names: string[];
  /** Calls of this process, or parts of them, that hang and that nobody waits for any more. */
  abandoned: string[];
  /** Flights that nobody has taken. */
  waiting: number;
}

/** Codes that come with a value. */
const VALUED = 'vuxmoh';

type RawCall = [token: Buffer, generation: Buffer, kind: Buffer, items: Buffer, queries: Buffer[]];
type Raw = [Buffer, [Buffer, Buffer][], RawCall[], Buffer, Buffer[], Buffer[], number, Buffer[]?];

export function readReply(answer: unknown): ExchangeReply {
  const [wake, events, calls, codes, values, names, waiting, abandoned = []] = answer as Raw;
  let at = 0;
  return {
    wakeMs: Number(wake.toString()),
    events: events.map(([name, detail]) => [name.toString(), detail.toString()]),
    calls: calls.map(readCall),
    own: [...codes.toString()].map((code) => ({
      code,
      value: VALUED.includes(code) ? (values[at++] as Buffer) : NOTHING,
    })),
    names: names.map(String),
    abandoned: abandoned.map(String),
    waiting,
  };
}

function readCall([token, generation, kind, items, queries]: RawCall): TakenCall {
  const words = items.toString().split(' ');
  return {
    token: token.toString(),
    generation: Number(generation.toString()),
    single: kind.toString().startsWith('1'),
    ahead: kind.toString().endsWith('a'),
    items: Array.from({ length: words.length / 3 }, (_, i) => ({
      key: words[3 * i] as string,
      sealed: queries[i] ?? NOTHING,
      tries: Number(words[3 * i + 1]),
      waitedMs: Number(words[3 * i + 2]),
    })),
  };
}
