/** Both ends of a connection between two processes: whole messages, with open files in flight. */
import type { Link } from '../shared-address/group-host.js';
import type { OpenFile } from './group-system.js';
import type { ProcessHost } from './process-host.js';

interface Message {
  readonly bytes: Uint8Array;
  readonly files: readonly OpenFile[];
}

/** Messages that wait for a process that does not read them, at most. */
const MAX_WAITING = 256;

export class PairedLink implements Link {
  private peer: PairedLink | undefined;
  private readonly inbox: Message[] = [];
  private onReadable: (() => void) | undefined;
  private ended = false;
  private closed = false;
  private wakePending = false;

  private constructor(readonly host: ProcessHost) {}

  static pair(one: ProcessHost, other: ProcessHost): readonly [PairedLink, PairedLink] {
    const ends = [new PairedLink(one), new PairedLink(other)] as const;
    ends[0].peer = ends[1];
    ends[1].peer = ends[0];
    one.links.add(ends[0]);
    other.links.add(ends[1]);
    return ends;
  }

  send(bytes: Uint8Array, descriptors: readonly number[]): boolean {
    const { peer, host } = this;
    if (peer !== undefined) host.system.tap?.(host, peer.host, bytes);
    if (this.closed || peer === undefined || peer.closed) throw new Error('the peer is gone');
    if (peer.inbox.length >= MAX_WAITING) return false;
    const files = descriptors.map((descriptor) => host.fileOf(descriptor));
    for (const file of files) file.descriptors++;
    peer.inbox.push({ bytes: bytes.slice(), files });
    peer.wake();
    return true;
  }

  receive(): { bytes: Uint8Array; descriptors: readonly number[] } | undefined | null {
    if (this.closed) return null;
    const message = this.inbox.shift();
    if (message === undefined) return this.ended ? null : undefined;
    const descriptors = message.files.map((file) => {
      const descriptor = this.host.install(file);
      file.drop();
      return descriptor;
    });
    return { bytes: message.bytes, descriptors };
  }

  watch(onReadable: () => void): void {
    this.onReadable = onReadable;
    if (this.inbox.length > 0 || this.ended) this.wake();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.host.links.delete(this);
    for (const { files } of this.inbox.splice(0)) for (const file of files) file.drop();
    if (this.peer !== undefined) {
      this.peer.ended = true;
      this.peer.wake();
    }
  }

  /** Until all is read, as a socket that is polled by level. */
  private wake(): void {
    if (this.wakePending) return;
    this.wakePending = true;
    this.host.soon(() => {
      this.wakePending = false;
      if (this.closed || this.onReadable === undefined) return;
      if (this.inbox.length === 0 && !this.ended) return;
      this.onReadable();
      this.wake();
    });
  }
}
