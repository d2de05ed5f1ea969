// The plan's part of verify-run: index, packs, documents, and every claim in a document resolve with their hashes.
// Keeps eight bytes a group, by which each record's task is compared with the planned one.

import { createHash } from 'node:crypto';
import { messageOf } from '../errors.ts';
import type { PlanRef } from '../plan/plan.ts';
import { walkPlan } from '../plan/walk.ts';
import type { Account } from './verify-account.ts';

const MARK_BYTES = 8;

/** Which task each group was planned with. */
export class PlannedTasks {
  private readonly marks: Buffer;

  constructor(groups: number) {
    this.marks = Buffer.alloc(groups * MARK_BYTES);
  }

  set(group: number, taskId: string): void {
    mark(taskId).copy(this.marks, group * MARK_BYTES);
  }

  /** True also for a group whose document could not be read: that is a fault already. */
  fits(group: number, taskId: string): boolean {
    const kept = this.marks.subarray(group * MARK_BYTES, (group + 1) * MARK_BYTES);
    return kept.every((b) => b === 0) || kept.equals(mark(taskId));
  }
}

function mark(taskId: string): Buffer {
  return createHash('sha256').update(JSON.stringify(taskId)).digest().subarray(0, MARK_BYTES);
}

/** Null if the plan cannot be read at all. */
export async function verifyPlan(account: Account, plan: PlanRef): Promise<PlannedTasks | null> {
  // A place takes more than 200 bytes: a manifest cannot make us reserve memory that its index does not back.
  if (plan.groups * 100 > plan.index.bytes) {
    account.fault(`plan index ${plan.index.key}: ${plan.index.bytes} bytes are too few for ${plan.groups} groups`);
    return null;
  }
  if (!(await account.objects([plan.index], 'plan index'))) return null;
  const tasks = new PlannedTasks(plan.groups);
  let groups = 0;
  try {
    for await (const step of walkPlan(account.store, plan)) {
      if (step.kind === 'fault') {
        account.fault(step.fault);
        if (step.group !== null) groups = step.group + 1;
        continue;
      }
      groups = step.group + 1;
      if (step.group < plan.groups) tasks.set(step.group, step.taskId);
      await account.objects(step.claims, `plan document of group ${step.group}`);
    }
  } catch (error) {
    account.fault(`plan index ${plan.index.key}: ${messageOf(error)}`);
    return tasks;
  }
  if (groups !== plan.groups)
    account.fault(`plan index ${plan.index.key}: has ${groups} places where ${plan.groups} groups are planned`);
  return tasks;
}
