import { expect, it } from 'vitest';
import { readSlots, writeSlots } from '../../src/shared/lane.ts';

it('slots are written and read again; a lane of none is not named', () => {
  const slots = { interactive: 1, rollout: 4, light: 16, verify: 0 };
  expect(writeSlots(slots)).toBe('interactive=1,rollout=4,light=16');
  expect(readSlots(writeSlots(slots))).toEqual({ interactive: 1, rollout: 4, light: 16 });
  expect(writeSlots({})).toBe('');
});

it.each(['', 'rollout', 'rollout=', 'rollout=-1', 'rollout=1.5', 'sideways=3', '=', 'rollout=99999999'])(
  'what is no lane with a whole number is left out: %j',
  (text) => expect(readSlots(text)).toEqual({}),
);
