/**
 * Files that packets are written to. They hold what programs say to one another, so they are made
 * for their owner alone; and where others may write too, as in /tmp, no link that was put in their
 * place leads to a file of the owner's that would be lost.
 */
import { constants, openSync } from 'node:fs';

const { O_WRONLY, O_CREAT } = constants;
/** Windows has none. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const OWNER_ONLY = 0o600;

/**
 * Opens a file to write to, or makes it.
 * @param how what is to become of what is in it: `O_TRUNC`, or `O_APPEND`
 * @returns the file descriptor
 * @throws Error as `fs.openSync`; one that says so for a symbolic link
 */
export function openPrivate(path: string, how: number): number {
  try {
    return openSync(path, O_WRONLY | O_CREAT | O_NOFOLLOW | how, OWNER_ONLY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ELOOP') throw error;
    throw new Error(`${path} is a symbolic link, which is not followed`, { cause: error });
  }
}
