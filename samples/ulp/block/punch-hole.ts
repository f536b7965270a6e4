/** Holes in files: fallocate(2) with FALLOC_FL_PUNCH_HOLE, which Node does not have. */

/** Bytes of a file read as zeroes; whole blocks of the file system then take no space. */
export type HolePuncher = (fd: number, offset: number, bytes: number) => Promise<void>;

/**
 * That of fs-native-extensions, which is an optional dependency: without an addon for this system
 * there is none, and discarded blocks are zeroes that take space.
 */
export async function systemPuncher(): Promise<HolePuncher | undefined> {
  try {
    const { trim } = await import('fs-native-extensions');
    return trim;
  } catch {
    return undefined;
  }
}
