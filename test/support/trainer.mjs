// A trainer, as a process of its own: submits a run, then follows its results from where it last was, over and over until all
// groups are there, whatever becomes of the line. Prints each record as it came.
//   node trainer.mjs BASE_URL KEY RUN GROUPS SPEC_FILE

import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

const [base, key, run, groups, spec] = process.argv.slice(2);
const headers = { authorization: `Bearer ${key}` };
/** Longer than a heartbeat: a line that says nothing for so long is dead. */
const SILENCE_MS = 12_000;

async function insist(what) {
  for (;;) {
    try {
      return await what();
    } catch (error) {
      process.stderr.write(`trainer: ${error}\n`);
      await wait(200);
    }
  }
}

await insist(async () => {
  const body = JSON.stringify({ run_id: run, spec: JSON.parse(readFileSync(spec, 'utf8')) });
  const answer = await fetch(`${base}/v1/runs`, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
});

let cursor = null;
let seen = 0;
while (seen < Number(groups))
  await insist(async () => {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), SILENCE_MS);
    try {
      const after = cursor === null ? '' : `&after=${encodeURIComponent(cursor)}`;
      const answer = await fetch(`${base}/v1/runs/${run}/results?follow=1${after}`, { headers, signal: silent.signal });
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
      let rest = '';
      for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE_MS);
        const lines = (rest + piece).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          const record = line.trim() === '' ? null : JSON.parse(line);
          if (record?.cursor === undefined || record.group === undefined) continue;
          cursor = record.cursor;
          seen++;
          process.stdout.write(`${line}\n`);
        }
        if (seen >= Number(groups)) return;
      }
    } finally {
      clearTimeout(timer);
      silent.abort();
    }
  });
process.exit(0);
