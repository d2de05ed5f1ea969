import { expect, it } from 'vitest';
import { readConfig } from '../../../src/shared/config.ts';
import { openLog } from '../../../src/shared/log.ts';
import { bringImages } from '../../../src/workers/rollout/engine-gate/images.ts';

it('refuses a folder that has no list of images, before it asks the engine', async () => {
  const log = openLog({ ...readConfig({}), logLevel: 'silent' }, 'engine-gate');
  await expect(bringImages('unix:///nowhere.sock', import.meta.dirname, log)).rejects.toMatchObject({
    code: 'images_unreadable',
    exit: 2,
    message: expect.stringContaining(import.meta.dirname),
  });
});
