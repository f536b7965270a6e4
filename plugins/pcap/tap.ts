/** Listens in on a packet port: what it receives and sends goes to a capture. */
import { type Clock, type Gid, type PacketPort, RX, TX, TX_SEGMENT } from '../../core/spi/index.js';
import type { CaptureFile } from './capture-file.js';
import { Direction } from './pcapng.js';
import { completeFrame, headerBytes, ICRC_BYTES } from './roce-frame.js';

export interface TapOptions {
  readonly file: CaptureFile;
  readonly interfaceId: number;
  readonly clock: Clock;
  /** What the clock's 0 is, in microseconds since 1970. */
  readonly epochUs: number;
  readonly udpPort: number;
}

/**
 * From now on, until the port is closed. The port's own methods are replaced on the object, so that
 * a port that has no tap does nothing for it. To be called before regions and paths are
 * added.
 */
export function tapPort(port: PacketPort, options: TapOptions): void {
  const { file, interfaceId, clock, epochUs, udpPort } = options;
  const regions = new Map<number, Uint8Array>();
  const paths = new Map<number, { readonly gid: Gid; readonly local: Gid }>();
  const headers = new Uint8Array(port.txPackets.buffer, port.txPackets.byteOffset);
  const original = {
    receive: port.receive.bind(port),
    send: port.send.bind(port),
    addRegion: port.addRegion.bind(port),
    removeRegion: port.removeRegion.bind(port),
    addPath: port.addPath.bind(port),
    close: port.close.bind(port),
  };

  const received = (at: number): void => {
    const { rxPackets, rxArena, gids } = port;
    const offset = word(rxPackets, at + RX.OFFSET);
    const length = word(rxPackets, at + RX.LENGTH);
    const source = gidAt(rxPackets, at + RX.SOURCE_GID);
    const destination = gids[word(rxPackets, at + RX.LOCAL_GID_INDEX)] ?? source;
    const sourcePort = word(rxPackets, at + RX.SOURCE_PORT);
    const start = headerBytes(source);
    const bytes = start + length + ICRC_BYTES;
    const frame = file.reserve(bytes);
    frame.set(rxArena.subarray(offset, offset + length), start);
    completeFrame(frame, { source, destination, sourcePort, destinationPort: udpPort });
    file.commit(bytes, interfaceId, epochUs + clock.now(), Direction.INBOUND);
  };

  const sent = (at: number): void => {
    const { txPackets, txSegments } = port;
    const path = paths.get(word(txPackets, at + TX.PATH));
    if (path === undefined) return;
    const { gid: destination, local: source } = path;
    const start = headerBytes(source);
    const header = (at + TX.HEADER) * 4;
    const headerLength = word(txPackets, at + TX.HEADER_LENGTH);
    const pad = ((headers[header + 1] ?? 0) >> 4) & 3;
    const first = word(txPackets, at + TX.FIRST_SEGMENT);
    const end = first + word(txPackets, at + TX.SEGMENT_COUNT);
    let length = headerLength + pad;
    for (let i = first; i < end; i++) {
      length += word(txSegments, i * TX_SEGMENT.WORDS + TX_SEGMENT.LENGTH);
    }
    const bytes = start + length + ICRC_BYTES;
    const frame = file.reserve(bytes);
    frame.set(headers.subarray(header, header + headerLength), start);
    let to = start + headerLength;
    for (let i = first; i < end; i++) {
      const segment = i * TX_SEGMENT.WORDS;
      const size = word(txSegments, segment + TX_SEGMENT.LENGTH);
      const from =
        word(txSegments, segment + TX_SEGMENT.OFFSET_LO) +
        word(txSegments, segment + TX_SEGMENT.OFFSET_HI) * 2 ** 32;
      const region = regions.get(word(txSegments, segment + TX_SEGMENT.REGION));
      if (region !== undefined) frame.set(region.subarray(from, from + size), to);
      to += size;
    }
    frame.fill(0, to, to + pad);
    const ports = { sourcePort: udpPort, destinationPort: udpPort };
    completeFrame(frame, { source, destination, ...ports });
    file.commit(bytes, interfaceId, epochUs + clock.now(), Direction.OUTBOUND);
  };

  port.receive = () => {
    const count = original.receive();
    for (let i = 0; i < count; i++) received(i * RX.WORDS);
    return count;
  };
  port.send = (from, to) => {
    const end = original.send(from, to);
    for (let i = from; i < end; i++) sent(i * TX.WORDS);
    return end;
  };
  port.addRegion = (memory, byteOffset, byteLength) => {
    const region = original.addRegion(memory, byteOffset, byteLength);
    regions.set(region, new Uint8Array(memory, byteOffset, byteLength));
    return region;
  };
  port.removeRegion = (region) => {
    original.removeRegion(region);
    regions.delete(region);
  };
  port.addPath = (gid, localGidIndex) => {
    const path = original.addPath(gid, localGidIndex);
    paths.set(path, { gid: gid.slice(), local: port.gids[localGidIndex] ?? gid });
    return path;
  };
  port.close = async () => {
    try {
      await original.close();
    } finally {
      file.release();
    }
  };
}

/** A GID as four big-endian words holds it. */
function gidAt(words: Uint32Array, at: number): Gid {
  const gid = new Uint8Array(16);
  const view = new DataView(gid.buffer);
  for (let i = 0; i < 4; i++) view.setUint32(i * 4, word(words, at + i));
  return gid;
}

function word(words: Uint32Array, at: number): number {
  return words[at] ?? 0;
}
