/** Merges captures of several processes, in order of time. */
import { closeSync, constants, writeSync } from 'node:fs';
import { type Block, CaptureReader } from './capture-reader.js';
import { BlockType, sectionHeader } from './pcapng.js';
import { openPrivate } from './private-file.js';

/** An input file: its next packet, and the numbers that its interfaces have in the result. */
interface Source {
  readonly reader: CaptureReader;
  readonly interfaces: number[];
  packet: Block | undefined;
  timeUs: number;
}

/**
 * Merges our capture files into one. All interfaces are kept, with new numbers.
 * @param inputs files that `capture` has written; a partial block at the end is left out
 * @param output is replaced if it exists
 * @returns the numbers of packets and interfaces
 * @throws Error as `fs.openSync`, and if the output is a symbolic link
 */
export function mergeCaptures(
  inputs: readonly string[],
  output: string,
): { readonly packets: number; readonly interfaces: number } {
  const sources = inputs.map((path): Source => {
    return { reader: new CaptureReader(path), interfaces: [], packet: undefined, timeUs: 0 };
  });
  try {
    const fd = openPrivate(output, constants.O_TRUNC);
    try {
      return merge(sources, (bytes) => {
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
      });
    } finally {
      closeSync(fd);
    }
  } finally {
    for (const { reader } of sources) reader.close();
  }
}

function merge(
  sources: readonly Source[],
  write: (bytes: Uint8Array) => void,
): { packets: number; interfaces: number } {
  let interfaces = 0;
  let packets = 0;
  const advance = (source: Source): void => {
    while ((source.packet = source.reader.next()) !== undefined) {
      const { type, bytes } = source.packet;
      if (type === BlockType.ENHANCED_PACKET) {
        source.timeUs = bytes.getUint32(12, true) * 2 ** 32 + bytes.getUint32(16, true);
        return;
      }
      if (type !== BlockType.INTERFACE_DESCRIPTION) continue;
      source.interfaces.push(interfaces++);
      write(bytesOf(bytes));
    }
  };
  write(sectionHeader('dapl'));
  sources.forEach(advance);
  for (let source = earliest(sources); source?.packet; source = earliest(sources)) {
    const { bytes } = source.packet;
    bytes.setUint32(8, source.interfaces[bytes.getUint32(8, true)] ?? 0, true);
    write(bytesOf(bytes));
    packets++;
    advance(source);
  }
  return { packets, interfaces };
}

function earliest(sources: readonly Source[]): Source | undefined {
  let first: Source | undefined;
  for (const source of sources) {
    if (source.packet && (!first || source.timeUs < first.timeUs)) first = source;
  }
  return first;
}

function bytesOf(view: DataView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
