// A platform over loopback HTTP that answers by a case's script: each request takes the next outcome. What the SDK
// raises there is the status and body here that make it raise.

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { dumpJson, parseJson } from '../../src/shared/json/json.ts';
import type { Value, ValueMap } from '../../src/shared/json/value.ts';

export interface SentRequest {
  batch: boolean;
  body: ValueMap;
}

export class ScriptedPlatform {
  readonly requests: SentRequest[] = [];
  script: ValueMap[] = [];
  /** False: an older platform, without the batch path. */
  batchPath = true;
  private readonly server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const batch = (request.url ?? '').endsWith('/query-batch');
    if (batch && !this.batchPath) {
      response.writeHead(404).end();
      return;
    }
    const body = parseJson(Buffer.concat(chunks).toString()) as ValueMap;
    this.requests.push({ batch, body });
    const { status, answer } = answerTo(body, batch, this.script.shift());
    response.writeHead(status, { 'content-type': 'application/json' }).end(answer === null ? '' : dumpJson(answer));
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => {
      this.server.close(resolve);
    });
  }
}

const CERTIFIED = new Map<string, Value>([
  ['decision', 'open'],
  ['proof_checked', true],
]);

function answerTo(body: ValueMap, batch: boolean, outcome: ValueMap | undefined): { status: number; answer: Value } {
  const ok = (data: Value) => ({
    status: 200,
    answer: new Map<string, Value>([
      ['ok', true],
      ['data', data],
    ]),
  });
  switch (outcome?.get('do')) {
    case 'results':
      return batch ? ok(new Map([['results', outcome.get('results') as Value]])) : ok(outcome.get('results') ?? null);
    case 'value':
      return ok(outcome.get('value') ?? null);
    case 'ok': {
      const data = outcome.has('result') ? (outcome.get('result') ?? null) : CERTIFIED;
      return ok(batch ? new Map([['results', [okItem(0, data)]]]) : data);
    }
    case 'echo':
      return ok(new Map([['results', (body.get('queries') as ValueMap[]).map(echoed)]]));
    case 'sdk-error': {
      const error = new Map([...outcome].filter(([key]) => ['code', 'message', 'rejected_facts'].includes(key)));
      return {
        status: Number(outcome.get('status_code')),
        answer: new Map<string, Value>([
          ['ok', false],
          ['error', error],
        ]),
      };
    }
    default:
      return { status: 503, answer: null };
  }
}

function okItem(index: number, data: Value): Value {
  return new Map<string, Value>([
    ['index', BigInt(index)],
    ['status', 'ok'],
    ['data', data],
  ]);
}

function echoed(query: ValueMap, i: number): Value {
  const number = (query.get('facts') as ValueMap).get('n') ?? BigInt(i);
  return okItem(i, new Map<string, Value>([...CERTIFIED, ['decision', `d${number}`]]));
}
