/**
 * Files and named memory as memory of the process, by the native code that all addons carry
 * (native/file_mapping.cc, native/named_memory.cc).
 */
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

// Memory by a name, by the native code that addons carry (native/named_memory.cc).

/** The part of an addon that shares memory. */
export interface MemorySharer {
  /**
   * Memory that all callers of the user share by the name: new, and zeros, for the first one.
   * @throws Error with `code` EINVAL (another size), EACCES (another user's), ETIMEDOUT, EPROTO,
   * ENOMEM, EMFILE
   */
  shareMemory(name: string, lengthBytes: number): ArrayBuffer;
}

/** Substitutes for error codes that the SPI does not have. */
const CODES: Readonly<Record<string, SpiErrorCode>> = { EPROTO: 'EIO', EMFILE: 'ENOMEM' };

/** @throws SpiError as `Device.shareMemory` says */
export function shareMemory(sharer: MemorySharer, name: string, lengthBytes: number): ArrayBuffer {
  // A buffer of more bytes than Node.js allows would end the process.
  if (lengthBytes > constants.MAX_LENGTH) {
    const message = `${lengthBytes} bytes; a region has at most ${constants.MAX_LENGTH}`;
    throw new SpiError('EOVERFLOW', message);
  }
  try {
    return sharer.shareMemory(name, lengthBytes);
  } catch (cause) {
    const { code, message } = cause as { code: string; message: string };
    throw new SpiError(CODES[code] ?? (code as SpiErrorCode), message, { cause });
  }
}
