import { readFileSync, writeFileSync } from 'node:fs';

const MAGIC_MICROSECONDS = 0xa1b2c3d4;
const LINKTYPE_ETHERNET = 1;
const FILE_HEADER_BYTES = 24;
const RECORD_HEADER_BYTES = 16;

/** The Ethernet frames of a classic pcap file as tcpdump writes it on this machine. */
export function readPcap(file: string): Buffer[] {
  return readPcapRecords(file).map(({ frame }) => frame);
}

/** As `readPcap`, with the time of each frame in microseconds. */
export function readPcapRecords(file: string): { frame: Buffer; timeUs: number }[] {
  const bytes = readFileSync(file);
  if (bytes.length < FILE_HEADER_BYTES) throw new Error(`${file}: too short for a capture`);
  if (bytes.readUInt32LE(0) !== MAGIC_MICROSECONDS) throw new Error(`${file}: no pcap magic`);
  if (bytes.readUInt32LE(20) !== LINKTYPE_ETHERNET) throw new Error(`${file}: not Ethernet`);
  const frames: { frame: Buffer; timeUs: number }[] = [];
  for (let at = FILE_HEADER_BYTES; at < bytes.length;) {
    const capturedBytes = bytes.readUInt32LE(at + 8);
    const originalBytes = bytes.readUInt32LE(at + 12);
    if (capturedBytes !== originalBytes) throw new Error(`${file}: frame ${frames.length} is cut`);
    const timeUs = bytes.readUInt32LE(at) * 1e6 + bytes.readUInt32LE(at + 4);
    at += RECORD_HEADER_BYTES;
    frames.push({ frame: bytes.subarray(at, at + capturedBytes), timeUs });
    at += capturedBytes;
  }
  return frames;
}

/** For the checks of the checkers: a capture of given frames. */
export function writePcap(file: string, frames: readonly Buffer[]): void {
  const header = Buffer.alloc(FILE_HEADER_BYTES);
  header.writeUInt32LE(MAGIC_MICROSECONDS, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(0x40000, 16);
  header.writeUInt32LE(LINKTYPE_ETHERNET, 20);
  const records = frames.flatMap((frame) => {
    const record = Buffer.alloc(RECORD_HEADER_BYTES);
    record.writeUInt32LE(frame.length, 8);
    record.writeUInt32LE(frame.length, 12);
    return [record, frame];
  });
  writeFileSync(file, Buffer.concat([header, ...records]));
}
