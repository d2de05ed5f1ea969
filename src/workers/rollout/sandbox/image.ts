// The image a box is started from: the user's image with the runner grafted on, made once for each pair of them and
// found again by its tag. The runner comes out of an image that set-up has built, named by the hash of its sources.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { messageOf, missingError } from '../../../shared/errors.ts';
import { isImageName } from '../../../shared/spec/image-name.ts';
import { type DockerEngine, EngineError, type ImageFacts } from './engine.ts';
import { DEFAULT_PATH } from './launch.ts';

/** In the checkout; the compiled sources lie as deep as these. */
const RUNNER_SOURCES = fileURLToPath(new URL('../../../../infra/runner/', import.meta.url));
/** Mounted over in every box. */
const BOX_FOLDERS = ['/work', '/tmp', '/dev/shm', '/judge', '/farm'];
/** The engine reads them at each start: it would wait for ever in a pipe. */
const READ_FILES = ['/etc/passwd', '/etc/group'];
const RUNNER_PATH = '/.rollout-farm-runner';

export interface BoxImage {
  /** The user's image. */
  imageId: string;
  runnerHash: string;
  /** What boxes are started from. */
  tag: string;
  /** PATH of its commands. */
  path: string;
  engineCpus: number;
  engineRuntimes: string[];
}

/** 12 digits; infra/runner/build.sh computes the same. */
export function runnerHash(folder: string = RUNNER_SOURCES): string {
  const hash = createHash('sha256');
  let all: string[];
  try {
    all = readdirSync(folder);
  } catch (error) {
    throw missingError(
      'image_missing',
      `the runner's sources are not at ${folder}`,
      'put infra/runner of the checkout beside dist',
      error,
    );
  }
  const names = all.filter((name) => /\.[ch]$/.test(name) || name === 'build.sh');
  for (const name of names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
    const content = readFileSync(`${folder}/${name}`);
    hash.update(`${name} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 12);
}

export async function prepareImage(engine: DockerEngine, image: string, runner: string): Promise<BoxImage> {
  // it would be part of the path of a request: another request, or one to another address
  if (!isImageName(image))
    throw missingError(
      'image_unusable',
      `no image can have the name ${JSON.stringify(image.slice(0, 100))}: allowed is [HOST/]NAME[:TAG][@DIGEST] in small letters`,
      'see `docker images` for those that there are',
    );
  try {
    await engine.ping(5_000);
  } catch (error) {
    throw missingError(
      'docker_unreachable',
      `the Docker engine does not answer (${messageOf(error)})`,
      'start Docker, or run `./farm demo` once: it sets up what is missing',
      error,
    );
  }
  const base = await engine.image(image);
  if (base === null) throw missingError('image_missing', `Docker has no image "${image}"`, howToGet(image));
  const facts = await engine.facts();
  if (base.os !== 'linux' || base.architecture !== facts.architecture)
    throw missingError(
      'image_unusable',
      `the image "${image}" is made for ${base.os}/${base.architecture}, the engine runs linux/${facts.architecture}`,
      `use an image for ${facts.architecture}`,
    );
  if (base.volumes.length > 0)
    throw missingError(
      'image_unusable',
      `the image "${image}" declares volumes (${base.volumes.join(', ')}), which would be writable without a limit`,
      'use an image without VOLUME',
    );
  const tag = `rollout-farm/box:${base.id.replace('sha256:', '').slice(0, 12)}-${runner}`;
  const result = {
    imageId: base.id,
    runnerHash: runner,
    tag,
    path: pathOf(base),
    engineCpus: facts.cpus,
    engineRuntimes: facts.runtimes,
  };
  if ((await engine.image(tag)) !== null) return result;
  const source = `rollout-farm/runner:${runner}`;
  if ((await engine.image(source)) === null)
    throw missingError(
      'image_missing',
      `Docker has no image "${source}", the runner of this checkout`,
      howToGet(source),
    );
  try {
    await engine.graft({
      base: base.id,
      source,
      path: RUNNER_PATH,
      tag,
      folders: BOX_FOLDERS,
      files: READ_FILES,
      changes: [`ENTRYPOINT ["${RUNNER_PATH}"]`, 'CMD []', 'USER 0', 'WORKDIR /', 'HEALTHCHECK NONE'],
    });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw missingError(
      'image_unusable',
      `the image "${image}" cannot be made fit for boxes (${error.message})`,
      undefined,
      error,
    );
  }
  return result;
}

function howToGet(image: string): string {
  return image.startsWith('rollout-farm/')
    ? 'run `./farm demo` once: it builds it'
    : `build or pull it first (docker pull ${image})`;
}

function pathOf(image: ImageFacts): string {
  return image.env.find((one) => one.startsWith('PATH='))?.slice(5) || DEFAULT_PATH;
}
