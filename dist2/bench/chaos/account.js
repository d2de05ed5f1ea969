// The account after the fire: every planned member once, with the reward that it must have; the trainer's stream as the
// results have it. Each fault of the account is a sentence.
import { z } from 'zod';
const recordSchema = z.looseObject({
    cursor: z.string(),
    group: z.int(),
    task_id: z.string(),
    members: z.array(z.looseObject({
        member: z.int(),
        status: z.enum(['completed', 'no_result']),
        reward: z.number().optional(),
        cause: z.string().optional(),
        detail: z.string().optional(),
    })),
});
export function readResults(text) {
    return text
        .split('\n')
        .filter(Boolean)
        .map((line) => recordSchema.parse(JSON.parse(line)));
}
export function memberFaults(planned, results) {
    const faults = [];
    const seen = new Map();
    const wanted = new Map(planned.map((p) => [`${p.task}/${p.member}`, p.reward]));
    for (const { task_id, members } of results)
        for (const { member, status, reward, cause, detail } of members) {
            const name = `${task_id}/${member}`;
            const times = (seen.get(name) ?? 0) + 1;
            seen.set(name, times);
            if (times > 1)
                faults.push(`counted twice: ${name}`);
            if (!wanted.has(name))
                faults.push(`nobody planned ${name}`);
            else if (status !== 'completed')
                faults.push(`lost: ${name} has no result: ${cause ?? ''}: ${detail ?? ''}`);
            else if (reward !== wanted.get(name))
                faults.push(`wrong reward: ${name} has ${reward}, and earned ${wanted.get(name)}`);
        }
    for (const name of wanted.keys())
        if (!seen.has(name))
            faults.push(`lost: ${name} is in no closed group`);
    return faults;
}
export function streamFaults(follower, results) {
    const faults = follower.odd.map((line) => `the stream had a line that is no record: ${line}`);
    const twice = follower.groups.filter((g, i) => follower.groups.indexOf(g) !== i);
    const missed = results.map((r) => r.group).filter((g) => !follower.groups.includes(g));
    if (twice.length > 0)
        faults.push(`the stream repeated groups ${twice.slice(0, 10).join(', ')}`);
    if (missed.length > 0)
        faults.push(`the stream has a gap: groups ${missed.slice(0, 10).join(', ')} of ${missed.length}`);
    const at = results.findIndex((r, i) => r.cursor !== follower.cursors[i]);
    if (faults.length === 0 && at >= 0)
        faults.push(`the stream and the results part at place ${at}: cursors ${follower.cursors[at]} and ${results[at]?.cursor}`);
    return faults;
}
