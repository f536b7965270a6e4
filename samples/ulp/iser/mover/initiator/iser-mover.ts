/**
 * iSER: an initiator's connection on a DAT endpoint (RFC 7145). Control PDUs are SENDs; the data of
 * a command is moved by the target, into and out of memory that is opened to it for that long.
 */
import {
  CompletionFlags,
  type ConnectionEvent,
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  type Evd,
  EvdFlags,
  EventBatch,
  type Ia,
  type Lmr,
  type LmrSegment,
  MemPrivileges,
  type Pz,
  type Rmr,
} from 'dapl';
import { leaveUnhandled } from 'dapl/spi';
import {
  asIscsiError,
  IscsiError,
  type OutgoingPdu,
  protocolError,
  type ScsiTask,
} from '../../session/initiator/index.js';
import {
  ISER_HEADER_BYTES,
  ISER_MIN_PDU_BYTES,
  iserCmHeader,
  iserHeader,
  nameOf,
  readIserMessage,
  readTargetPdu,
  WireError,
} from '../../wire/index.js';
import { allOrNone } from '../all-or-none.js';
import type { InitiatorMemory } from './memory.js';
import type { InitiatorMover, MoverHost, Portal } from './mover.js';

/**
 * Buffers of SENDs, used in turn. Only each eighth SEND is signalled: its completion shows that all
 * before it were sent, too.
 */
const EACH = 8;

class SendRing {
  readonly slots: readonly LmrSegment[];
  /** Free-running counts of slots taken, and of slots known to be free again. */
  private taken = 0;
  private done = 0;

  /** @param slotCount at least 16: if all are in use, a signalled SEND is among them */
  constructor(
    memory: Lmr,
    slotCount: number,
    private readonly slotBytes: number,
  ) {
    this.slots = Array.from({ length: slotCount }, (_, i) => memory.segment(i * slotBytes, 0));
  }

  /** Number of free slots. */
  get free(): number {
    return this.slots.length - (this.taken - this.done);
  }

  /** The next slot, cut to this length. */
  take(lengthBytes: number): LmrSegment {
    const place = this.taken++ % this.slots.length;
    return this.slots[place]!.set(place * this.slotBytes, lengthBytes);
  }

  /** True if the SEND of the slot taken last must be signalled. */
  get wantsCompletion(): boolean {
    return this.taken % EACH === 0;
  }

  /** Cookie of that completion. */
  get cookie(): number {
    return this.taken;
  }

  /** A completion has come. */
  complete(cookie: number): void {
    this.done = cookie;
  }
}

/** Limits that size a connection. Lengths are in bytes. */
export interface IserLimits {
  /** Commands in flight. */
  readonly tasks: number;
  /** The longest data segment that is declared to the target. */
  readonly recvDataSegment: number;
  /** The longest data segment to send. */
  readonly sendDataSegment: number;
  /** Timeout for establishing the connection. */
  readonly connectTimeoutMs: number;
}

/** Longest data of a Login Response, and of a Text Response of discovery. */
const LOGIN_SEGMENT_BYTES = 8192;
const LOGIN_RECEIVES = 4;
/** Receives for PDUs that answer no command: pings, asynchronous messages, rejects. */
const UNEXPECTED_RECEIVES = 8;
/** SENDs besides commands: NOP-Out, task management, text, logout. */
const OTHER_SENDS = 32;
const BATCH = 64;
const { SUPPRESS, DEFAULT } = CompletionFlags;
const EVENTS = 4;

/** Memory of a command that is open to the target. */
interface Exposure {
  readonly opened: Opened;
  /** The staging buffer, if the consumer's memory is not registered. */
  readonly staged: Lmr | undefined;
  isInvalidated: boolean;
}

export class IserInitiatorMover implements InitiatorMover {
  private readonly ia: Ia;
  private readonly evd: Evd;
  private readonly ep: Ep;
  private readonly access: Access;
  private readonly sends: SendRing;
  private readonly sendMemory: Lmr;
  private readonly receiveMemory: Lmr;
  /** Posted receives by cookie. */
  private readonly receives: LmrSegment[] = [];
  private readonly queue: OutgoingPdu[] = [];
  /** Open memory by task tag. */
  private readonly exposures = new Map<number, Exposure>();
  private readonly batch = new EventBatch(BATCH);
  private isPrepared = false;
  private isOver = false;

  /** @throws DatError if there is no memory, or no device */
  constructor(
    private readonly portal: Portal,
    private readonly host: MoverHost,
    private readonly memory: InitiatorMemory,
    private readonly limits: IserLimits,
  ) {
    const { ia, pz } = memory;
    this.ia = ia;
    const { tasks, recvDataSegment, sendDataSegment, connectTimeoutMs } = limits;
    const hasWindows = ia.query().ia.maxRmrs > 0;
    const sendSlots = tasks + OTHER_SENDS;
    const sendBytes = ISER_MIN_PDU_BYTES + sendDataSegment;
    const fullReceives = tasks + UNEXPECTED_RECEIVES;
    const maxRecvDtos = LOGIN_RECEIVES + fullReceives;
    const maxRequestDtos = sendSlots + (hasWindows ? 4 * tasks : 0);
    const loginBytes = ISER_MIN_PDU_BYTES + LOGIN_SEGMENT_BYTES;
    const fullBytes = ISER_MIN_PDU_BYTES + recvDataSegment;
    const loginTotal = LOGIN_RECEIVES * loginBytes;
    const receiveBytes = loginTotal + fullReceives * fullBytes;
    [this.sendMemory, this.receiveMemory, this.evd, this.ep] = allOrNone((keep) => {
      const sendMemory = keep(ia.allocate(sendSlots * sendBytes, { pz }));
      const receiveMemory = keep(ia.allocate(receiveBytes, { pz }));
      const evd = keep(
        ia.createEvd({
          qlen: maxRecvDtos + maxRequestDtos + EVENTS,
          streams: EvdFlags.CONNECTION | EvdFlags.DTO | EvdFlags.RMR_BIND,
          policy: 'NOTIFY',
          handler: () => this.drain(),
        }),
      );
      const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
      // RDMA Reads that the target may have open are left at their default: LIO takes the number of
      // the request, and without one it would never fetch the data of a write.
      const attributes = { maxRecvDtos, maxRequestDtos };
      const ep = ia.createEndpoint({ pz, ...evds, attributes });
      return [sendMemory, receiveMemory, evd, ep];
    });
    this.access = hasWindows ? new WindowAccess(ia, pz, this.ep) : new RegionAccess();
    this.sends = new SendRing(this.sendMemory, sendSlots, sendBytes);
    this.addReceives(LOGIN_RECEIVES, loginBytes, 0);
    this.postReceives(0);
    this.addReceives(fullReceives, fullBytes, loginTotal);
    const privateData = iserCmHeader.make({
      zbvaNotSupported: true,
      sendWithInvalidateNotSupported: !this.access.takesInvalidate,
    }).bytes;
    const { address, port: connQual } = portal;
    const why = 'its adapter has been closed';
    this.ep.state$.subscribe({
      complete: () => this.lost(new IscsiError('ISCSI_CONNECTION', why)),
    });
    this.ep.connect({ address, connQual, privateData, timeoutMs: connectTimeoutMs });
  }

  send(pdu: OutgoingPdu): void {
    if (this.isOver) return;
    if (this.queue.length > 0 || this.sends.free === 0) this.queue.push(pdu);
    else this.post(pdu);
  }

  prepare(): void {
    if (this.isPrepared) return;
    this.isPrepared = true;
    this.postReceives(LOGIN_RECEIVES);
  }

  release(task: ScsiTask, transferredBytes: number): void {
    const exposure = this.exposures.get(task.tag);
    if (exposure === undefined) return;
    this.exposures.delete(task.tag);
    const { opened, staged, isInvalidated } = exposure;
    if (!this.isOver) this.access.close(opened, isInvalidated);
    if (staged === undefined) return;
    const { dataIn } = task.request;
    dataIn?.set(staged.bytes.subarray(0, transferredBytes));
    this.memory.giveBack(staged);
  }

  allocate(lengthBytes: number): Uint8Array {
    return this.memory.allocate(lengthBytes);
  }

  close(how: 'graceful' | 'abrupt'): void {
    if (this.isOver) return;
    // What has been sent is with the target, or it has answered the logout: nothing is waited for.
    if (how === 'graceful' && this.ep.state === 'CONNECTED') this.ep.disconnect('abrupt');
    this.end();
  }

  private addReceives(count: number, lengthBytes: number, from: number): void {
    for (let i = 0; i < count; i++) {
      this.receives.push(this.receiveMemory.segment(from + i * lengthBytes, lengthBytes));
    }
  }

  private postReceives(from: number): void {
    for (let slot = from; slot < this.receives.length; slot++) this.postReceive(slot);
  }

  private postReceive(slot: number): void {
    this.ep.postRecv(this.receives[slot]!, slot);
  }

  /** Opens the memory of a command, and posts the SEND after that. */
  private post({ header, data, task, unsolicitedBytes = 0 }: OutgoingPdu): void {
    const lengthBytes = ISER_HEADER_BYTES + header.length + data.length;
    const segment = this.sends.take(lengthBytes);
    const { bytes } = segment;
    const opened = task === undefined ? undefined : this.expose(task, unsolicitedBytes);
    iserHeader.emit(opened ?? {}, bytes);
    bytes.set(header, ISER_HEADER_BYTES);
    if (data.length > 0) bytes.set(data, ISER_MIN_PDU_BYTES);
    const { wantsCompletion, cookie } = this.sends;
    this.ep.postSend(segment, cookie, wantsCompletion ? DEFAULT : SUPPRESS);
  }

  /** @returns the fields of the iSER header; undefined if nothing is opened */
  private expose(
    task: ScsiTask,
    unsolicitedBytes: number,
  ): Parameters<typeof iserHeader.emit>[0] | undefined {
    const { dataIn, dataOut } = task.request;
    if (dataIn !== undefined && dataIn.length > 0) {
      const { stag, address } = this.open(task, dataIn, 0, 'in');
      return { readValid: true, readStag: stag, readBase: address };
    }
    if (dataOut === undefined || unsolicitedBytes >= dataOut.length) return undefined;
    const { stag, address } = this.open(task, dataOut, unsolicitedBytes, 'out');
    return { writeValid: true, writeStag: stag, writeBase: address };
  }

  private open(task: ScsiTask, bytes: Uint8Array, from: number, direction: 'in' | 'out'): Opened {
    const region = this.memory.regionOf(bytes);
    const lengthBytes = bytes.length - from;
    const staged = region === undefined ? this.memory.take(lengthBytes) : undefined;
    if (staged !== undefined && direction === 'out') staged.bytes.set(bytes.subarray(from));
    const segment =
      region === undefined
        ? staged!.segment(0, lengthBytes)
        : region.segment(bytes.byteOffset - region.bytes.byteOffset + from, lengthBytes);
    const opened = this.access.open(segment, direction);
    this.exposures.set(task.tag, { opened, staged, isInvalidated: false });
    return opened;
  }

  private drain(): void {
    const { batch } = this;
    while (!this.isOver && this.evd.dequeueInto(batch, batch.capacity) > 0) {
      for (let i = 0; i < batch.count && !this.hasEnded(); i++) {
        const event = batch.events[i];
        if (event?.type === 'connection') this.onConnection(event);
        else if (event === undefined) this.onCompletion(i);
      }
    }
  }

  private onCompletion(at: number): void {
    const { batch } = this;
    // A failure ends the connection, whose event says why.
    if (batch.statuses[at] !== DatDtoStatus.SUCCESS) return;
    const cookie = batch.cookies[at]!;
    const operation = batch.operations[at]!;
    if (operation === DatDto.RECEIVE || operation === DatDto.RECEIVE_WITH_INVALIDATE) {
      const isInvalidating = operation === DatDto.RECEIVE_WITH_INVALIDATE;
      const stag = isInvalidating ? batch.immediates[at] : undefined;
      this.onReceive(cookie, batch.lengths[at]!, stag);
      return;
    }
    this.sends.complete(cookie);
    while (this.queue.length > 0 && this.sends.free > 0) this.post(this.queue.shift()!);
  }

  private onReceive(slot: number, lengthBytes: number, invalidated: number | undefined): void {
    const bytes = this.receives[slot]!.bytes.subarray(0, lengthBytes);
    try {
      const message = readIserMessage(bytes);
      if (message.type !== 'control') throw protocolError(`an iSER ${message.type} comes unasked`);
      const pdu = readTargetPdu(message.pdu);
      if (invalidated !== undefined) {
        this.invalidate(invalidated, pdu.header.initiatorTaskTag, pdu.type);
      }
      this.host.onPdu(pdu);
    } catch (error) {
      if (!(error instanceof WireError || error instanceof IscsiError)) throw error;
      this.lost(asIscsiError(error));
    }
    if (!this.hasEnded()) this.postReceive(slot);
  }

  /**
   * Handles an invalidation by the target, which is only allowed with the answer to the command.
   */
  private invalidate(stag: number, tag: number, type: string): void {
    const exposure = this.exposures.get(tag);
    if (type === 'scsiResponse' && exposure?.opened.stag === stag) {
      exposure.isInvalidated = true;
      return;
    }
    throw protocolError(`it invalidates 0x${stag.toString(16)} with a ${type} of another command`);
  }

  private onConnection(event: ConnectionEvent): void {
    if (event.number === DatEventNumber.ESTABLISHED) {
      this.host.onConnected();
      return;
    }
    const { address, port } = this.portal;
    const why = event.reason ?? event.cause ?? nameOf(DatEventNumber, event.number);
    const message = `the connection to ${address} port ${port} has ended: ${why}`;
    this.lost(new IscsiError('ISCSI_CONNECTION', message));
  }

  private lost(error: IscsiError): void {
    if (this.isOver) return;
    this.end();
    this.host.onLost(error);
  }

  private hasEnded(): boolean {
    return this.isOver;
  }

  /** Ends the connection. The endpoint is freed first: then the target cannot access anything. */
  private end(): void {
    this.isOver = true;
    this.queue.length = 0;
    // An adapter that is closed has freed them.
    this.ep[Symbol.dispose]();
    leaveUnhandled(this.evd[Symbol.asyncDispose]());
    this.access.free();
    for (const memory of [this.sendMemory, this.receiveMemory]) memory[Symbol.dispose]();
  }
}

/** Memory that is open to the target. */
export interface Opened {
  /** The RMR context (rkey). */
  readonly stag: number;
  readonly address: bigint;
}

/**
 * Grants the target access to the memory of a command. A memory window is bound before the command
 * and opens nothing else; the target closes it by SEND with invalidate, or this side does. A device
 * without windows uses the region itself, and offers no invalidation.
 */
export interface Access {
  /** True if the target may end an access by SEND with invalidate. */
  readonly takesInvalidate: boolean;
  /** Entries of the request queue that a command takes, besides its SEND. */
  readonly requestsPerTask: number;
  open(segment: LmrSegment, direction: 'in' | 'out'): Opened;
  /** @param isInvalidated true if the target has closed it */
  close(opened: Opened, isInvalidated: boolean): void;
  /** The endpoint is gone. */
  free(): void;
}

interface OpenedWindow extends Opened {
  readonly rmr: Rmr;
}

/** Access by a memory window for each command in flight. */
export class WindowAccess implements Access {
  readonly takesInvalidate = true;
  readonly requestsPerTask = 2;
  private readonly unbound: Rmr[] = [];
  private readonly all: Rmr[] = [];

  constructor(
    private readonly ia: Ia,
    private readonly pz: Pz,
    private readonly ep: Ep,
  ) {}

  open(segment: LmrSegment, direction: 'in' | 'out'): OpenedWindow {
    const rmr = this.unbound.pop() ?? this.make();
    const privileges = direction === 'in' ? MemPrivileges.REMOTE_WRITE : MemPrivileges.REMOTE_READ;
    const stag = rmr.bind(segment, this.ep, { privileges, flags: SUPPRESS })!;
    return { rmr, stag, address: rmr.address! };
  }

  close(opened: Opened, isInvalidated: boolean): void {
    const { rmr } = opened as OpenedWindow;
    if (!isInvalidated) rmr.unbind(this.ep, { flags: SUPPRESS });
    this.unbound.push(rmr);
  }

  free(): void {
    for (const rmr of this.all) if (!rmr.isFreed) rmr.free();
  }

  private make(): Rmr {
    const rmr = this.ia.createRmrForEp(this.pz);
    this.all.push(rmr);
    return rmr;
  }
}

/** Access by the key of the region. */
export class RegionAccess implements Access {
  readonly takesInvalidate = false;
  readonly requestsPerTask = 0;

  open({ lmr, offsetBytes }: LmrSegment): Opened {
    return { stag: lmr.rmrContext!, address: lmr.address + BigInt(offsetBytes) };
  }

  close(): void {
    // The region stays open for as long as there are connections.
  }

  free(): void {
    // Nothing has been made.
  }
}
