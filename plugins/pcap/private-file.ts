/**
 * Opens files for captured packets. Packets may hold secrets, so only the owner can read the files.
 * In folders such as /tmp, where others can write, symbolic links are not followed: one could make
 * us overwrite another file of the owner.
 */
import { constants, openSync } from 'node:fs';

const { O_WRONLY, O_CREAT } = constants;
/** Windows has no such flag. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const OWNER_ONLY = 0o600;

/**
 * Opens a file for writing, or creates it.
 * @param how `O_TRUNC` to replace its content, or `O_APPEND` to keep it
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
