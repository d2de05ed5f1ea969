// How much the names of a code task's files may come to: a grade's judge is told all of them, several times over.

/** Of the task's files and the check's together. */
export const TASK_NAME_BYTES = 512 * 1024;
/** What edits may add to that. */
export const ADDED_NAME_BYTES = 128 * 1024;

/** As they are told: in JSON, where a control character has six bytes. */
export function nameBytes(names: Iterable<string>): number {
  let bytes = 0;
  for (const name of names) bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
  return bytes;
}
