// A fault: something that befalls the farm, and is mended.

import type { Visible } from './sight.ts';

export interface Fault {
  /** Who or what it befell, for the report. */
  readonly what: string;
  /** What a person must be able to see while it holds; null where nothing has to wait for it. Read after `begin`. */
  readonly visible: Visible | null;
  /** What was accepted may be open again afterwards. */
  readonly forgets?: boolean;
  begin(): Promise<void>;
  /** May be called when it never began. */
  heal(): Promise<void>;
  /** What is wrong with how the farm bore it, asked while it still holds. */
  judge?(): Promise<string[]>;
}
