// Lanes: kinds of work that must not wait for each other. Each has a queue and slots of its own: a job's priority does
// nothing while the slots are full, so what must not wait needs slots that nothing else takes.
//   interactive  samples that a trainer waits for
//   rollout      members whose episode opens a sandbox
//   light        members whose environment never does
//   verify       members that wait for the verifier
import { ENVIRONMENT_CONFIGS } from './spec/environment-config.js';
export const MEMBER_LANES = ['rollout', 'light', 'verify'];
export const LANES = ['interactive', ...MEMBER_LANES];
/** Where an episode in this environment waits for its slot: decided from the name alone, before anything is begun. */
export function laneOf(environment) {
    return ENVIRONMENT_CONFIGS.get(environment)?.usesSandbox === false ? 'light' : 'rollout';
}
/** `rollout=4,light=16` */
export function writeSlots(slots) {
    return LANES.filter((lane) => (slots[lane] ?? 0) > 0)
        .map((lane) => `${lane}=${slots[lane]}`)
        .join(',');
}
/** What is not a lane's name with a whole number is left out. */
export function readSlots(text) {
    const pairs = text.split(',').flatMap((part) => {
        const [name, count] = part.split('=');
        const lane = LANES.find((l) => l === name);
        return lane === undefined || !/^\d{1,7}$/.test(count ?? '') ? [] : [[lane, Number(count)]];
    });
    return Object.fromEntries(pairs);
}
