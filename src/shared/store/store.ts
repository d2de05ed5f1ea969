// The store: a folder or S3 behind the same keys. Puts are durable when they return, and atomic: a reader sees
// all of an object or none of it. Nothing here knows what the objects mean.

export interface StoredObject {
  bytes: number;
  /** When it was last put, in milliseconds, by the store's own clock. */
  writtenAt: number;
}

/** A put that did not come to its end: never listed as a key, never read. */
export interface UnfinishedPut {
  name: string;
  /** By the store's own clock. */
  begunAt: number;
  /** No error if it is not there any more. */
  remove(): Promise<void>;
}

export interface Store {
  /** For messages, and to open it again: the folder's path or `s3://bucket/prefix`. */
  readonly address: string;
  /** Durable on return. Overwrites; content-addressed keys are only ever written with the same bytes. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** As `put`, but never overwrites: false if something is there already, whatever it is. */
  putNew(key: string, bytes: Uint8Array): Promise<boolean>;
  /** Null if there is no such key. `range` reads `length` bytes from `offset` (fewer at the end of the object). */
  get(key: string, range?: { offset: number; length: number }): Promise<Buffer | null>;
  /** Null if there is no such key. */
  head(key: string): Promise<StoredObject | null>;
  /** Every key that begins with `prefix`, in code-point order. */
  list(prefix: string): AsyncIterable<{ key: string } & StoredObject>;
  /** Folders below `prefix` (which ends with a slash) that hold nothing, each with its slash. Only where a store has folders of their own. */
  emptyFolders?(prefix: string): AsyncIterable<string>;
  unfinishedPuts(): AsyncIterable<UnfinishedPut>;
  /** No error if it is not there. */
  delete(key: string): Promise<void>;
  /** Throws FarmError (exit 3) unless something can be written, read back, listed and deleted. Says what people should know of it. */
  probe(): Promise<ProbeReport>;
  close(): Promise<void>;
}

export interface ProbeReport {
  /** Whether the store itself refuses a second `putNew`, also in a race. */
  conditionalPut: boolean;
  /** What is odd, and does not keep it from working. */
  warnings: string[];
}
