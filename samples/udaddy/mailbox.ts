/** One endpoint for datagrams with its buffers, and its steps as promises. */
import {
  type DatagramEvent,
  type DatagramSource,
  DatDto,
  DatDtoStatus,
  DatError,
  type DatEvent,
  type Evd,
  type Ia,
  type LmrSegment,
  nameOf,
  type UdAddressHandle,
  UdEp,
} from 'dapl';

const STEP_TIMEOUT_MS = 10_000;

export interface MailboxOptions {
  /** Bytes of each datagram, without the GRH area. */
  readonly sizeBytes: number;
  /** Receives to post: datagrams that it can take in altogether. */
  readonly receives: number;
  /** Sends that may be outstanding. */
  readonly sends: number;
}

export interface Datagram {
  readonly source: DatagramSource;
  readonly immediate: number;
  /** The receive buffer: GRH area and message. */
  readonly buffer: LmrSegment;
}

export class Mailbox {
  readonly ep: UdEp;
  /** What a client sends. */
  readonly message: LmrSegment;
  private readonly received: Evd;
  private readonly requested: Evd;
  private readonly buffers: readonly LmrSegment[];

  constructor(
    ia: Ia,
    private readonly options: MailboxOptions,
  ) {
    const { sizeBytes, receives, sends } = options;
    const pz = ia.createPz();
    const bufferBytes = UdEp.GRH_BYTES + sizeBytes;
    const memory = ia.allocate(receives * bufferBytes, { pz });
    this.message = ia.allocate(sizeBytes, { pz }).segment(0, sizeBytes);
    this.buffers = Array.from({ length: receives }, (_, index) =>
      memory.segment(index * bufferBytes, bufferBytes),
    );
    this.received = ia.createEvd({ qlen: receives });
    this.requested = ia.createEvd({ qlen: sends });
    this.ep = ia.createUdEndpoint({
      pz,
      recvEvd: this.received,
      requestEvd: this.requested,
      attributes: { maxRecvDtos: receives, maxRequestDtos: sends },
    });
    this.buffers.forEach((buffer, index) => this.ep.postRecv(buffer, index));
  }

  /** The next datagram. There is no limit to the wait for the first one of a service. */
  async receive(timeoutMs = STEP_TIMEOUT_MS): Promise<Datagram> {
    const event = await next(this.received, timeoutMs);
    const { source, immediate, transferredLength } = event;
    const buffer = this.buffers[event.cookie];
    const isExpected = event.operation === DatDto.RECV_UD_IMMED;
    if (!isExpected || source === undefined || immediate === undefined || buffer === undefined) {
      throw new Error(`not a message of udaddy: it has no immediate data`);
    }
    const sizeBytes = transferredLength - UdEp.GRH_BYTES;
    if (sizeBytes !== this.options.sizeBytes) {
      throw new Error(`a message of ${sizeBytes} bytes, not ${this.options.sizeBytes}: use -S`);
    }
    return { source, immediate, buffer };
  }

  /** Sends the same bytes `count` times; returns when all have left. */
  async send(bytes: LmrSegment, to: UdAddressHandle, count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      this.ep.postSendUdWithImmediate(bytes, to, index, this.ep.qpn);
    }
    for (let index = 0; index < count; index++) await next(this.requested, STEP_TIMEOUT_MS);
  }
}

async function next(evd: Evd, timeoutMs: number): Promise<DatagramEvent> {
  const event = await eventOf(evd, timeoutMs);
  if (event.type !== 'datagram') throw new Error(`a ${event.type} event among datagrams`);
  if (event.status === DatDtoStatus.SUCCESS) return event;
  throw new Error(`${nameOf(DatDto, event.operation)}: ${nameOf(DatDtoStatus, event.status)}`);
}

async function eventOf(evd: Evd, timeoutMs: number): Promise<DatEvent> {
  try {
    return (await evd.wait({ timeoutMs })).event;
  } catch (error) {
    if (!DatError.isDatError(error) || error.code !== 'DAT_TIMEOUT_EXPIRED') throw error;
    throw new Error('no datagram comes any more: some are lost, as datagrams may be', {
      cause: error,
    });
  }
}
