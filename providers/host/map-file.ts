/** Files as memory, by the native code that all addons carry (native/file_mapping.cc). */
import { constants } from 'node:buffer';
import { fstatSync } from 'node:fs';
import { type FileMapping, SpiError, type SpiErrorCode } from '../../core/spi/index.js';

/** The part of an addon that maps files. */
export interface FileMapper {
  /**
   * @param lengthBytes 0 for the rest of the file
   * @throws Error with `code` EINVAL, EACCES, ENOMEM or EOPNOTSUPP
   */
  mapFile(fd: number, offsetBytes: number, lengthBytes: number, shared: boolean): Uint8Array;
}

/** @throws SpiError as `Device.mapFile` says */
export function mapFile(mapper: FileMapper, file: FileMapping): Uint8Array {
  const { fd, offsetBytes, lengthBytes, shared } = file;
  checkViewable(lengthBytes ?? bytesBehind(fd, offsetBytes));
  try {
    return mapper.mapFile(fd, offsetBytes, lengthBytes ?? 0, shared);
  } catch (cause) {
    const { code, message } = cause as { code: SpiErrorCode; message: string };
    throw new SpiError(code, message, { cause });
  }
}

/** A view of more bytes than Node.js allows would end the process. */
function checkViewable(bytes: number): void {
  if (bytes <= constants.MAX_LENGTH) return;
  throw new SpiError(
    'EOVERFLOW',
    `${bytes} bytes of the file; a region has at most ${constants.MAX_LENGTH}: map parts of it`,
  );
}

/**
 * Bytes of the file from the offset on. For a descriptor that is not open, the mapper reports the
 * error.
 */
function bytesBehind(fd: number, offsetBytes: number): number {
  try {
    return fstatSync(fd).size - offsetBytes;
  } catch {
    return 0;
  }
}
