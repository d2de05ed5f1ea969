// A command that is to have said something before its deadline ends it: where the machine stood still before it could, it
// is run again with more time.

export async function spoken<Result extends { stdout: Buffer }>(
  firstMs: number,
  run: (timeoutMs: number) => Promise<Result>,
): Promise<Result> {
  for (let timeoutMs = firstMs; ; timeoutMs *= 4) {
    const result = await run(timeoutMs);
    if (result.stdout.length > 0 || timeoutMs > 60_000) return result;
  }
}
