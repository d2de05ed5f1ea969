// The store: a folder or S3 behind the same keys. Puts are durable when they return, and atomic: a reader sees
// all of an object or none of it. Nothing here knows what the objects mean.

export interface Store {
  /** For messages: the folder's path or `s3://bucket/prefix`. */
  readonly address: string;
  /** Durable on return. Overwrites; content-addressed keys are only ever written with the same bytes. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Null if there is no such key. `range` reads `length` bytes from `offset` (fewer at the end of the object). */
  get(key: string, range?: { offset: number; length: number }): Promise<Buffer | null>;
  /** Size in bytes, or null. */
  head(key: string): Promise<number | null>;
  /** Every key that begins with `prefix`, in code-point order. */
  list(prefix: string): AsyncIterable<{ key: string; bytes: number }>;
  /** Folders below `prefix` (which ends with a slash) that hold nothing, each with its slash. Only where a store has folders of their own. */
  emptyFolders?(prefix: string): AsyncIterable<string>;
  /** No error if it is not there. */
  delete(key: string): Promise<void>;
  /** Throws FarmError (exit 3) unless something can be written and read back. */
  probe(): Promise<void>;
  close(): Promise<void>;
}
