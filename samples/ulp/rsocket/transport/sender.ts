/** Posts everything that the session allows: entries, controls, and bytes of pending writes. */
import { RemoteSegment } from 'dapl';
import { StreamError } from '../../socket/index.js';
import type { Outgoing, Session } from '../session/index.js';
import {
  type ConnectionData,
  IOMAP_BYTES,
  iomapAt,
  LIST_ENTRIES,
  type RemoteRegion,
  targetAt,
  writeIomap,
} from '../wire/index.js';
import { type Link, Sent } from './link.js';
import type { ConnectionMemory } from './memory.js';
import type { RsocketPlan } from './options.js';
import type { PendingWrite } from './pending-write.js';

/**
 * With less than a fourth of the ring free it waits: otherwise a full ring makes short messages.
 */
const LOW_WATER = 4;

export class Sender {
  /** Bytes of the stream that were posted. */
  takenBytes = 0;
  private readonly queue: PendingWrite[] = [];
  private readonly messageBytes: number;
  private readonly list: RemoteSegment;
  private readonly isLittle: boolean;
  private readonly iomapEntry = new Uint8Array(IOMAP_BYTES);
  /** The region that was written last, and its parsed address. */
  private region: RemoteRegion | undefined = undefined;
  private remote: RemoteSegment | undefined = undefined;

  constructor(
    private readonly session: Session,
    private readonly link: Link,
    private readonly memory: ConnectionMemory,
    plan: RsocketPlan,
    peer: ConnectionData,
  ) {
    this.messageBytes = Math.min(plan.messageBytes, link.maxWriteBytes);
    this.list = parsed(peer.targetList);
    this.isLittle = !peer.isBigEndian;
  }

  /** Queues a write, which the next `post` sends. */
  add(write: PendingWrite): void {
    this.queue.push(write);
  }

  /** Posts as much as is allowed now. Writes that are taken completely end, and may add others. */
  readonly post = (): void => {
    const { session, queue } = this;
    for (let out = this.next(); out !== undefined; out = this.next()) this.postOut(out);
    for (let write = queue[0]; write !== undefined && this.advance(write); write = queue[0]) {
      queue.shift();
      write.end();
      if (session.isEnding) break;
    }
  };

  /** Ends all writes that were not taken. */
  end(error: StreamError): void {
    for (const write of this.queue.splice(0)) write.end(error);
  }

  private next(): Outgoing | undefined {
    return this.session.next(this.memory.staging.room >= IOMAP_BYTES);
  }

  private postOut(out: Outgoing): void {
    const { link, list, memory } = this;
    switch (out.type) {
      case 'control':
        link.tell(out.immediate);
        return;
      case 'target': {
        const entry = memory.half(out.offset);
        const segment = memory.targetFor(out.controlSlot, entry, this.isLittle);
        link.write(segment, Sent.CONTROL, list.seek(targetAt(out.slot)), out.immediate);
        return;
      }
      case 'iomap': {
        const { staging } = memory;
        writeIomap(new DataView(this.iomapEntry.buffer), 0, out.entry, this.isLittle);
        staging.copy(this.iomapEntry, 0);
        const remote = list.seek(iomapAt(out.slot, LIST_ENTRIES));
        link.write(staging.take(IOMAP_BYTES), Sent.DATA, remote, out.immediate);
      }
    }
  }

  /** @returns true if all of the write was taken */
  private advance(write: PendingWrite): boolean {
    while (write.left > 0) {
      const sent = write.areaOffset === undefined ? this.sendData(write) : this.writeArea(write);
      if (!sent) return false;
    }
    return true;
  }

  private sendData(write: PendingWrite): boolean {
    const { session, link, memory, messageBytes } = this;
    const bytes = this.fitting(Math.min(write.left, session.sendable, messageBytes));
    if (bytes === 0) return false;
    const remote = this.remoteAt(session.target, session.targetOffset);
    write.copyTo(memory.staging, bytes);
    this.takenBytes += bytes;
    const segments = memory.staging.take(bytes);
    link.write(segments, Sent.DATA, remote, session.sendData(bytes));
    return true;
  }

  /** Writes into an area of the peer, without notifying it. */
  private writeArea(write: PendingWrite): boolean {
    const { session, link, memory, messageBytes } = this;
    const at = write.areaOffset as bigint;
    const area = session.findIomap(at);
    if (area === undefined) {
      const detail = `the peer has not published offset ${at}`;
      write.end(new StreamError('EIO', { syscall: 'iowrite', detail }));
      write.left = 0;
      return true;
    }
    const inArea = Number(at - area.offset);
    const most = Math.min(write.left, area.region.length - inArea, messageBytes);
    const bytes = session.isWritable ? this.fitting(most) : 0;
    if (bytes === 0) return false;
    const remote = this.remoteAt(area.region, inArea);
    write.copyTo(memory.staging, bytes);
    link.writeSilently(memory.staging.take(bytes), remote);
    return true;
  }

  /** Number of those bytes to send now; 0 if it is better to wait for more room. */
  private fitting(wanted: number): number {
    const { room, most } = this.memory.staging;
    return room >= Math.min(wanted, most / LOW_WATER) ? Math.min(wanted, room) : 0;
  }

  private remoteAt(region: RemoteRegion, offset: number): RemoteSegment {
    if (region !== this.region || this.remote === undefined) {
      this.region = region;
      this.remote = parsed(region);
    }
    return this.remote.seek(offset);
  }
}

function parsed({ address, key }: RemoteRegion): RemoteSegment {
  return new RemoteSegment({ address, rmrContext: key });
}
