// How many groups a run has: those of its plan, and those that degenerate ones have called for so far.

export function plannedGroups({ groups, spares }: Readonly<Record<string, string | undefined>>): number {
  return Number(groups ?? 0) + Number(spares ?? 0);
}

/** Every group that a run has now is closed. What was not committed of them may call for further ones. */
export function allClosed(fields: Readonly<Record<string, string | undefined>>): boolean {
  return Number(fields.closed) >= plannedGroups(fields);
}
