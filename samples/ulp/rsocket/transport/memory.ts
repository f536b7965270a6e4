/** Registered memory of one connection: buffers that the peer writes to, and that we send from. */
import { endianness } from 'node:os';

import { type Ia, type Lmr, type LmrSegment, MemPrivileges, type Pz } from 'dapl';
import { CONTROL_SLOTS, type TargetList } from '../session/index.js';
import {
  type ConnectionData,
  IOMAP_BYTES,
  iomapAt,
  type IomapEntry,
  LIST_ENTRIES,
  readIomap,
  readTarget,
  type RemoteRegion,
  TARGET_BYTES,
  targetAt,
  writeTarget,
} from '../wire/index.js';
import type { RsocketPlan } from './options.js';
import type { Share } from './share.js';
import { StagingRing } from './staging-ring.js';

const IS_LITTLE = endianness() === 'LE';
const PEER_WRITES =
  MemPrivileges.LOCAL_READ | MemPrivileges.LOCAL_WRITE | MemPrivileges.REMOTE_WRITE;

export class ConnectionMemory implements TargetList {
  /** Receive buffer that the peer writes its bytes to. */
  readonly buffer: Lmr;
  /** List of the peer's entries: where this side may write. */
  private readonly list: Lmr;
  private readonly own: Lmr;
  private readonly listView: DataView;
  private readonly ownView: DataView;
  private readonly controls: readonly LmrSegment[];
  readonly staging: StagingRing;
  private readonly halfBytes: number;

  /** @throws DatError as `ia.allocate`; then nothing is left open */
  constructor(
    ia: Ia,
    pz: Pz,
    private readonly plan: RsocketPlan,
    share: Share,
  ) {
    const { receiveBytes, sendBytes, iomapSlots } = plan;
    const made: Lmr[] = [];
    const allocate = (bytes: number, privileges: number): Lmr => {
      const lmr = ia.allocate(bytes, { pz, privileges });
      made.push(lmr);
      return lmr;
    };
    try {
      this.buffer = allocate(receiveBytes, PEER_WRITES);
      this.list = allocate(LIST_ENTRIES * TARGET_BYTES + iomapSlots * IOMAP_BYTES, PEER_WRITES);
      const { LOCAL_READ, LOCAL_WRITE } = MemPrivileges;
      this.own = allocate(sendBytes + CONTROL_SLOTS * TARGET_BYTES, LOCAL_READ | LOCAL_WRITE);
    } catch (error) {
      for (const lmr of made) lmr.free();
      throw error;
    }
    this.halfBytes = receiveBytes / 2;
    this.listView = viewOf(this.list);
    this.ownView = viewOf(this.own);
    this.staging = new StagingRing(this.own, sendBytes, plan.sends, share);
    this.controls = Array.from({ length: CONTROL_SLOTS }, (_, slot) =>
      this.own.segment(sendBytes + slot * TARGET_BYTES, TARGET_BYTES),
    );
  }

  /** Location of the memory, for the peer. */
  get data(): ConnectionData {
    const { credits, iomapSlots } = this.plan;
    return {
      isBigEndian: !IS_LITTLE,
      credits,
      iomapSlots,
      targetList: regionOf(this.list, 0, LIST_ENTRIES),
      buffer: this.half(0),
    };
  }

  /** The half of the receive buffer at an offset. */
  half(offset: number): RemoteRegion {
    return regionOf(this.buffer, offset, this.halfBytes);
  }

  target(slot: number): RemoteRegion {
    return readTarget(this.listView, targetAt(slot), IS_LITTLE);
  }

  iomap(slot: number): IomapEntry {
    return readIomap(this.listView, iomapAt(slot, LIST_ENTRIES), IS_LITTLE);
  }

  /** Encodes an entry for the peer, in its byte order. */
  targetFor(controlSlot: number, entry: RemoteRegion, isLittle: boolean): LmrSegment {
    const segment = this.controls[controlSlot] as LmrSegment;
    writeTarget(this.ownView, segment.offsetBytes, entry, isLittle);
    return segment;
  }

  free(): void {
    this.staging.end();
    for (const lmr of [this.buffer, this.list, this.own]) if (!lmr.isFreed) lmr.free();
  }
}

/** A part of a region that the peer may write, in the form that the peer is told. */
export function regionOf(lmr: Lmr, offset: number, length: number): RemoteRegion {
  return { address: lmr.address + BigInt(offset), key: lmr.rmrContext as number, length };
}

function viewOf(lmr: Lmr): DataView {
  const { buffer, byteOffset, byteLength } = lmr.bytes;
  return new DataView(buffer, byteOffset, byteLength);
}
