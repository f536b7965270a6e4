/** Files as memory, by the native code that all addons carry (native/file_mapping.cc). */
import { type FileMapping, SpiError, type SpiErrorCode } from '../../core/spi/index.js';

/** What an addon has of it. */
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
  try {
    return mapper.mapFile(fd, offsetBytes, lengthBytes ?? 0, shared);
  } catch (cause) {
    const { code, message } = cause as { code: SpiErrorCode; message: string };
    throw new SpiError(code, message, { cause });
  }
}
