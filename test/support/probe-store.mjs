// Opens a store, puts and reads through it, and prints what it says of itself: for a process with a clock or keys of its own.

import { openStoreAddress } from '../../dist/shared/store/open.js';

const store = await openStoreAddress(process.argv[2]);
const report = await store.probe();
await store.put('clock', Buffer.from('what time is it?'));
const bytes = await store.get('clock');
await store.close();
process.stdout.write(`${JSON.stringify({ ...report, read: bytes?.toString() })}\n`);
