// Where those who wait for a run's store say so: a text that is gone by itself when nobody says it any more.

export function storeWaitKey(runKey: string): string {
  return `${runKey}:store-wait`;
}
