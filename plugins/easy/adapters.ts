/**
 * The adapters of this process that `dapl/easy` has opened: one for each device, shared by all that
 * use it, and closed when the last of them has ended.
 */
import type { Ia } from 'dapl';

interface Entry {
  readonly opened: Promise<Ia>;
  users: number;
  /** Set while it is being closed; resolves when another may be opened. */
  closing: Promise<void> | undefined;
}

const entries = new Map<string, Entry>();

/** One use of an adapter. */
export interface Lease {
  readonly ia: Ia;
  /** Another use of it, beside this one. */
  share(): Lease;
  /** Ends this use; the last one closes the adapter, and resolves then. Again: no-op. */
  release(): Promise<void>;
}

/**
 * Uses the adapter of a key, which is opened if it is not there.
 * @param key names the device
 * @throws what `open` rejects with
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
    // Its consumer may have closed it, by `conn.ia`.
    if (!ia.isFreed) return lease(key, entry, ia);
    forget(key, entry);
  }
}

/** An adapter that is the caller's own: nothing here closes it. */
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
      // What may go wrong with it is in its log: what has used it has ended.
      entry.closing = ia
        .close()
        .catch(() => undefined)
        .then(() => forget(key, entry));
      await entry.closing;
    },
  };
}
