/**
 * Several connections on shared event dispatchers, with messages of one size: what ucmatose does.
 */
import {
  type ConnectionEvent,
  type Cr,
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type LmrSegment,
  nameOf,
} from 'dapl';

import { patience } from '../../support/patience.js';

const STEP_TIMEOUT_MS = patience(20_000);

export interface ExchangeOptions {
  readonly connections: number;
  readonly messages: number;
  readonly sizeBytes: number;
}

interface Member {
  readonly ep: Ep;
  readonly outgoing: LmrSegment;
  readonly incoming: readonly LmrSegment[];
}

export class Exchange {
  private readonly members: readonly Member[];
  private readonly connections: Evd;
  private readonly requests: Evd;
  private readonly receives: Evd;

  constructor(
    ia: Ia,
    private readonly options: ExchangeOptions,
  ) {
    const { connections, messages, sizeBytes } = options;
    const pz = ia.createPz();
    const qlen = 2 * connections * (messages + 1);
    this.connections = ia.createEvd({ qlen: 4 * connections });
    this.requests = ia.createEvd({ qlen });
    this.receives = ia.createEvd({ qlen });
    const memory = ia.allocate(connections * (messages + 1) * sizeBytes, { pz });
    let used = 0;
    const next = (): LmrSegment => memory.segment(used++ * sizeBytes, sizeBytes);
    this.members = Array.from({ length: connections }, () => {
      const ep = ia.createEndpoint({
        pz,
        recvEvd: this.receives,
        requestEvd: this.requests,
        connectEvd: this.connections,
      });
      const incoming = Array.from({ length: messages }, next);
      incoming.forEach((segment, index) => ep.postRecv(segment, index));
      return { ep, incoming, outgoing: next() };
    });
  }

  connect(address: string, connQual: number): void {
    for (const { ep } of this.members) {
      ep.connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
    }
  }

  accept(index: number, request: Cr): void {
    request.accept(this.member(index).ep);
  }

  async established(): Promise<void> {
    for (let left = this.options.connections; left > 0; left--) {
      const event = await this.nextConnectionEvent();
      if (event.number !== DatEventNumber.ESTABLISHED) throw new Error(textOf(event));
    }
  }

  /** Every endpoint sends all its messages, which say which connection they are of. */
  async send(): Promise<void> {
    const { messages, connections } = this.options;
    this.members.forEach(({ ep, outgoing }, index) => {
      fill(outgoing.bytes, index);
      for (let message = 0; message < messages; message++) ep.postSend(outgoing, message);
    });
    await this.complete(this.requests, DatDto.SEND, messages * connections);
  }

  async receive(): Promise<void> {
    const { messages, connections } = this.options;
    await this.complete(this.receives, DatDto.RECEIVE, messages * connections);
  }

  /** A peer that sends back from the buffer that it received into: the bytes must be ours. */
  assertEchoed(): void {
    for (const { outgoing, incoming } of this.members) {
      for (const [index, { bytes }] of incoming.entries()) {
        if (Buffer.compare(bytes, outgoing.bytes) !== 0)
          throw new Error(`message ${index} differs`);
      }
    }
  }

  disconnect(): void {
    for (const { ep } of this.members) {
      if (ep.state === 'CONNECTED') ep.disconnect('graceful');
    }
  }

  async disconnected(): Promise<void> {
    for (let left = this.options.connections; left > 0; left--) {
      const event = await this.nextConnectionEvent();
      if (event.number !== DatEventNumber.DISCONNECTED) throw new Error(textOf(event));
    }
  }

  private async complete(evd: Evd, operation: DatDto, count: number): Promise<void> {
    for (let left = count; left > 0; left--) {
      const { event } = await evd.wait({ timeoutMs: STEP_TIMEOUT_MS });
      if (event.type !== 'dto') throw new Error(`a ${event.type} event among completions`);
      const { status, transferredLength } = event;
      if (status !== DatDtoStatus.SUCCESS) {
        throw new Error(`${nameOf(DatDto, operation)}: ${nameOf(DatDtoStatus, status)}`);
      }
      if (operation === DatDto.RECEIVE && transferredLength !== this.options.sizeBytes) {
        throw new Error(`a message of ${transferredLength} bytes`);
      }
    }
  }

  private async nextConnectionEvent(): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait({ timeoutMs: 2 * STEP_TIMEOUT_MS });
    if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
    return event;
  }

  private member(index: number): Member {
    const member = this.members[index];
    if (member === undefined) throw new Error(`connection ${index} of ${this.members.length}`);
    return member;
  }
}

/** One line about a connection event, with the flight record below it if there is one. */
export function textOf(event: ConnectionEvent): string {
  const name = nameOf(DatEventNumber, event.number);
  const reason = event.rejectReason === undefined ? '' : ` rejectReason=${event.rejectReason}`;
  const record = (event.flightRecord ?? []).map((line) => `\n  ${line}`).join('');
  return `${name}${reason} ${event.reason ?? ''}${record}`;
}

function fill(bytes: Uint8Array, seed: number): void {
  for (let at = 0; at < bytes.length; at++) bytes[at] = (seed + at * 7 + (at >> 8)) & 0xff;
}
