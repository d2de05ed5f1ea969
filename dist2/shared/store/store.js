// The store: a folder or S3 behind the same keys. Puts are durable when they return, and atomic: a reader sees
// all of an object or none of it. Nothing here knows what the objects mean.
export {};
