/** A file of a umad device with one agent: packets out and in. */
import { constants } from 'node:os';
import { MAD_BYTES, type MadAgentOptions, SpiError } from '../../../core/spi/index.js';
import { openFailure, registerFailure } from './errors.js';
import { UmadEvent, type UmadNative } from '../addon/umad.js';
import { PACKET_HEADER_BYTES, type PacketHeader, parsePacketHeader } from './packet.js';

export interface UmadFileHandlers {
  /** @param mad valid while the handler runs; with RMPP of any length */
  readonly onPacket: (header: PacketHeader, mad: Uint8Array) => void;
  /** The kernel has taken the packet with that token, or errno says why not. */
  readonly onWritten: (token: number, errno: number) => void;
  /** The device is gone. */
  readonly onGone: () => void;
  readonly onClosed: () => void;
}

const { EAGAIN, EINTR, ENODEV, ENOSPC } = constants.errno;
/** Packets that are read in one go: other descriptors have their turn too. */
const BATCH = 64;
const PACKET_BYTES = PACKET_HEADER_BYTES + MAD_BYTES;
/** A buffer that a long transfer has needed is kept up to this size. */
const KEPT_BYTES = 1 << 16;
const RMPP_VERSION = 1;

export class UmadFile {
  private readonly number: number;
  private buffer = new Uint8Array(PACKET_BYTES);
  /** True during a read: a handler that reads must not overwrite its own packet. */
  private reading = false;
  private closed = false;

  /**
   * @param kernelRmpp the kernel segments and reassembles transfers longer than a datagram
   * @throws SpiError that says what may help
   */
  constructor(
    private readonly native: UmadNative,
    path: string,
    options: MadAgentOptions,
    kernelRmpp: boolean,
    private readonly handlers: UmadFileHandlers,
  ) {
    this.number = native.umadOpen(path, (event, token, errno) => {
      if (event === UmadEvent.READABLE) this.drain();
      else if (event === UmadEvent.WRITTEN) handlers.onWritten(token, errno);
      else if (event === UmadEvent.CLOSED) handlers.onClosed();
    });
    if (this.number < 0) throw openFailure(-this.number, path);
    const errno = this.register(options, kernelRmpp);
    if (errno === 0) return;
    this.close();
    throw registerFailure(errno, path, options);
  }

  /** @throws SpiError('ENODEV') */
  write(token: number, packet: Uint8Array): void {
    const errno = this.closed ? ENODEV : this.native.umadWrite(this.number, token, packet);
    if (errno !== 0) throw new SpiError('ENODEV', 'the file of the agent is closed');
  }

  /** Reads all packets that have arrived. */
  drain(): void {
    if (this.reading) return;
    this.reading = true;
    try {
      for (let count = 0; count < BATCH && !this.closed; count++) {
        if (!this.readOne()) break;
      }
    } finally {
      this.reading = false;
      if (this.buffer.length > KEPT_BYTES) this.buffer = new Uint8Array(PACKET_BYTES);
    }
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.native.umadClose(this.number);
  }

  private register(options: MadAgentOptions, kernelRmpp: boolean): number {
    const { managementClass, classVersion, oui, methods } = options;
    const mask = new Uint8Array(16);
    for (const method of methods) mask[method >> 3]! |= 1 << (method & 7);
    // Without methods the kernel wants no class: it enters nothing, and knows the agent by number.
    const asksOnly = methods.length === 0;
    return this.native.umadRegister(
      this.number,
      asksOnly ? 0 : managementClass,
      asksOnly ? 0 : classVersion,
      asksOnly ? 0 : (oui ?? 0),
      kernelRmpp ? RMPP_VERSION : 0,
      mask,
    );
  }

  /** False when there is no more, or nothing to be had. */
  private readOne(): boolean {
    let length = this.native.umadRead(this.number, this.buffer);
    if (length === -ENOSPC) {
      const { lengthBytes } = parsePacketHeader(this.buffer);
      this.buffer = new Uint8Array(lengthBytes);
      length = this.native.umadRead(this.number, this.buffer);
    }
    if (length < 0) {
      if (length !== -EAGAIN && length !== -EINTR) this.handlers.onGone();
      return false;
    }
    if (length < PACKET_HEADER_BYTES) return true;
    const packet = this.buffer.subarray(0, length);
    this.handlers.onPacket(parsePacketHeader(packet), packet.subarray(PACKET_HEADER_BYTES));
    return true;
  }
}
