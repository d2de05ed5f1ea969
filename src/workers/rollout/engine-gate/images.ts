// Brings the images that boxes are made of to an engine that has none: from archives that travel with the gate, because a
// fresh machine, or an engine that was started a moment ago in a cluster, has no registry to ask.
// The folder has images.json: [{"file", "name", "id"}], written where the archives were made (infra/images/build.sh).

import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { inputError, messageOf, missingError } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { type EngineAddress, engineAddress } from '../sandbox/engine-address.ts';

const listSchema = z.array(z.strictObject({ file: z.string(), name: z.string(), id: z.string() }));
const ENGINE_MS = 120_000;
const LOAD_MS = 300_000;
const ASK_MS = 15_000;

/** Waits for the engine; throws FarmError: exit 3 if it does not come, or does not take an image, exit 2 for another folder. */
export async function bringImages(dockerHost: string | null, folder: string, log: Log): Promise<void> {
  const list = await readList(folder);
  await engineThere(dockerHost, log);
  for (const { file, name, id } of list) {
    const has = await idOf(dockerHost, name);
    if (has === id) continue;
    log.info({ image: name, file, instead_of: has }, 'loading an image');
    const { status, body } = await call(dockerHost, 'POST', '/images/load?quiet=1', LOAD_MS, path.join(folder, file));
    // An engine that fails over an archive has long answered 200. The name may still be another image's.
    if (status !== 200 || body.includes('"errorDetail"') || (await idOf(dockerHost, name)) === null)
      throw missingError(
        'image_missing',
        `the engine does not take the image ${name}: ${status} ${body.slice(0, 200)}`,
      );
  }
}

async function readList(folder: string): Promise<z.infer<typeof listSchema>> {
  try {
    return listSchema.parse(JSON.parse(await readFile(path.join(folder, 'images.json'), 'utf8')));
  } catch (error) {
    throw inputError(
      'images_unreadable',
      `--images ${folder} has no images.json that can be read: ${messageOf(error)}`,
      'a folder that infra/images/build.sh has made',
    );
  }
}

async function engineThere(dockerHost: string | null, log: Log): Promise<void> {
  const until = performance.now() + ENGINE_MS;
  for (let told = false; ; told = true) {
    const why = await call(dockerHost, 'GET', '/_ping', ASK_MS).then(
      ({ status }) => (status === 200 ? null : `it answers ${status}`),
      messageOf,
    );
    if (why === null) return;
    if (!told) log.warn({ why }, 'waiting for the Docker engine');
    if (performance.now() > until)
      throw missingError(
        'docker_unreachable',
        `the Docker engine does not answer: ${why}`,
        'is its socket mounted, and is DOCKER_GID the group that may use it?',
      );
    await wait(500);
  }
}

async function idOf(dockerHost: string | null, name: string): Promise<string | null> {
  const { status, body } = await call(dockerHost, 'GET', `/images/${name}/json`, ASK_MS);
  return status === 200 ? z.object({ Id: z.string() }).parse(JSON.parse(body)).Id : null;
}

function call(
  dockerHost: string | null,
  method: string,
  target: string,
  withinMs: number,
  file?: string,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const at = requestTo(engineAddress(dockerHost));
    const headers = file === undefined ? {} : { 'content-type': 'application/x-tar' };
    const asked = http.request({ ...at, path: target, method, headers, timeout: withinMs });
    asked.on('timeout', () => asked.destroy(new Error(`no answer within ${withinMs} ms`)));
    asked.on('error', reject);
    asked.on('response', (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      answer.on('error', reject).on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    if (file === undefined) return void asked.end();
    const archive = createReadStream(file);
    archive.on('error', (error) => asked.destroy(error));
    archive.pipe(asked);
  });
}

/** TLS to an engine is dockerode's to speak: a gate stands beside its engine. */
function requestTo(address: EngineAddress): http.RequestOptions {
  return 'socketPath' in address ? { socketPath: address.socketPath } : { host: address.host, port: address.port };
}
