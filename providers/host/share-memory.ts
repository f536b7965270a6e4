/** Memory by a name, by the native code that addons carry (native/named_memory.cc). */
import { constants } from 'node:buffer';
import { SpiError, type SpiErrorCode } from '../../core/spi/index.js';

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
