/**
 * The adapters that `dapl/easy` has opened in this process: one for each device. All users share
 * it, and the last one closes it.
 */
import type { Ia } from 'dapl';

interface Entry {
  readonly opened: Promise<Ia>;
  users: number;
  /** Set while the adapter is being closed; resolves when it may be opened again. */
  closing: Promise<void> | undefined;
}

const entries = new Map<string, Entry>();

/** One reference to an adapter. */
export interface Lease {
  readonly ia: Ia;
  /** Adds a reference. */
  share(): Lease;
  /**
   * Drops this reference; resolves when the last one has closed the adapter. A second call is a
   * no-op.
   */
  release(): Promise<void>;
}

/**
 * Takes a reference to the adapter of a key, and opens the adapter if necessary.
 * @param key names the device
 * @throws whatever `open` rejects with
 */
export async function leaseOf(key: string, open: () => Promise<Ia>): Promise<Lease> {
  for (;;) {
    const entry = entries.get(key) ?? begin(key, open);
    if (entry.closing !== undefined) {
      await entry.closing;
      continue;
    }
    entry.users++;
    const ia = await entry.opened;
    // The application may have closed it through `conn.ia`.
    if (!ia.isFreed) return lease(key, entry, ia);
    forget(key, entry);
  }
}

/** A reference to the caller's own adapter, which is not closed here. */
export function borrowed(ia: Ia): Lease {
  const own: Lease = { ia, share: () => own, release: () => Promise.resolve() };
  return own;
}

/** True if the adapter of a key is open, or being opened. */
export function isLeased(key: string): boolean {
  const entry = entries.get(key);
  return entry !== undefined && entry.closing === undefined;
}

function begin(key: string, open: () => Promise<Ia>): Entry {
  const entry: Entry = { opened: open(), users: 0, closing: undefined };
  entries.set(key, entry);
  entry.opened.catch(() => forget(key, entry));
  return entry;
}

function forget(key: string, entry: Entry): void {
  if (entries.get(key) === entry) entries.delete(key);
}

function lease(key: string, entry: Entry, ia: Ia): Lease {
  let released = false;
  return {
    ia,
    share() {
      entry.users++;
      return lease(key, entry, ia);
    },
    async release() {
      if (released) return;
      released = true;
      if (--entry.users > 0) return;
      // Errors of closing are in the adapter's log: all its users have ended.
      entry.closing = ia
        .close()
        .catch(() => undefined)
        .then(() => forget(key, entry));
      await entry.closing;
    },
  };
}
