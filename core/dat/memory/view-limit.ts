/** Limits of a region's size: the largest view of memory, and the device's limit. */
import { constants } from 'node:buffer';
import { DatError } from '../../errors/index.js';
import type { Device } from '../../spi/index.js';

/** Bytes of the largest view of memory: 4 GiB in Node 20. */
export const MOST_VIEW_BYTES = constants.MAX_LENGTH;

/** Bytes of the largest region. */
export function mostRegionBytes({ attributes }: Device): number {
  return Math.min(attributes.maxMemoryRegionBytes, MOST_VIEW_BYTES);
}

/** @throws DatError DAT_LENGTH_ERROR for more bytes than the device registers in one region */
export function checkRegistrable(operation: string, device: Device, lengthBytes: number): void {
  const { maxMemoryRegionBytes } = device.attributes;
  if (lengthBytes <= maxMemoryRegionBytes) return;
  throw new DatError('DAT_LENGTH_ERROR', {
    operation,
    message:
      `memory has ${lengthBytes} bytes; ` +
      `a region of this adapter has at most ${maxMemoryRegionBytes}`,
    hint: 'register parts of it, each a region of its own',
    value: lengthBytes,
  });
}

/** @throws DatError DAT_LENGTH_ERROR for more bytes than one view has */
export function checkViewable(operation: string, lengthBytes: number): void {
  if (lengthBytes <= MOST_VIEW_BYTES) return;
  throw new DatError('DAT_LENGTH_ERROR', {
    operation,
    message:
      `memory has ${lengthBytes} bytes; a region has at most ${MOST_VIEW_BYTES}, ` +
      'the longest view of memory in this version of Node.js',
    hint: 'register parts of it: views of an ArrayBuffer, each a region of its own',
    value: lengthBytes,
  });
}
