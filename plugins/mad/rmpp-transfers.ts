/**
 * The RMPP transfers of an agent, both ways: finds the one that a MAD belongs to, and answers MADs
 * of unknown transfers (IBTA 13.6; Linux ib_mad's rules).
 */
import type { Clock, Logger, MadAddress, Scheduler, Timers } from '../../core/spi/index.js';
import type { MadPort } from './port.js';
import { RmppControl } from './rmpp-control.js';
import type { RmppCounters } from './rmpp-counters.js';
import type { RmppAllowance } from './rmpp-limits.js';
import { RmppReceiver } from './rmpp-receiver.js';
import { RmppSender, type RmppSenderInit } from './rmpp-sender.js';
import type { Agent } from './agent.js';
import {
  classHeaderLength,
  type MadHeader,
  METHOD_RESPONSE_BIT,
} from '../../core/spi/modules/mad-header.js';
import {
  parseRmppHeader,
  RMPP_FLAG,
  RMPP_STATUS,
  RMPP_TYPE,
  RMPP_VERSION,
  type RmppHeader,
} from './wire/rmpp-header.js';

/** Services that all agents of a module share. */
export interface RmppServices {
  readonly port: MadPort;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly counters: RmppCounters;
  readonly allowance: RmppAllowance;
  readonly window: number;
}

/** The agent as its transfers see it. */
/** Parameters of a transfer to send. */
export interface TransferInit extends Omit<
  RmppSenderInit,
  'firstWindow' | 'onStart' | 'onReported'
> {
  readonly header: MadHeader;
}

export class RmppTransfers {
  private readonly sends = new Map<string, RmppSender>();
  private readonly receives = new Map<string, RmppReceiver>();
  private readonly control: RmppControl;

  constructor(
    private readonly services: RmppServices,
    private readonly agent: Agent,
  ) {
    this.control = new RmppControl(services.port, agent, services.logger);
  }

  /** True if a transfer with this transaction id is being sent to that peer. */
  isSending(header: MadHeader, peer: MadAddress): boolean {
    return this.sends.has(sendKey(header, peer));
  }

  makeSender(init: TransferInit): RmppSender {
    const key = sendKey(init.header, init.peer);
    const services = { ...this.services, control: this.control };
    return new RmppSender(services, this.agent, {
      ...init,
      firstWindow: this.replyWindow(init.header, init.peer),
      onStart: (sender) => this.sends.set(key, sender),
      onReported: () => this.sends.delete(key),
    });
  }

  /** Window that the peer has granted to the response of a request of several segments; else 1. */
  private replyWindow(header: MadHeader, peer: MadAddress): number {
    if ((header.method & METHOD_RESPONSE_BIT) === 0) return 1;
    const requestMethod = header.method & ~METHOD_RESPONSE_BIT;
    return this.receives.get(receiveKey(header, requestMethod, peer))?.replyWindow ?? 1;
  }

  /** Handles a MAD with the RMPP flag "active". */
  receive(mad: Uint8Array, header: MadHeader, source: MadAddress): void {
    const rmpp = parseRmppHeader(mad);
    if (!rmpp) return;
    if (rmpp.version !== RMPP_VERSION) {
      this.violate(mad, header, source, RMPP_STATUS.UNSUPPORTED_VERSION);
    } else if (rmpp.type === RMPP_TYPE.DATA) this.onData(mad, header, rmpp, source);
    else if (rmpp.type === RMPP_TYPE.ACK) this.onAck(mad, header, rmpp, source);
    else if (rmpp.type === RMPP_TYPE.STOP) this.onStop(mad, header, rmpp, source);
    else if (rmpp.type === RMPP_TYPE.ABORT) this.onAbort(mad, header, rmpp, source);
    else this.violate(mad, header, source, RMPP_STATUS.BAD_TYPE);
  }

  /** Drops incoming and remembered transfers, without callbacks. */
  abandonReceives(): void {
    for (const receiver of [...this.receives.values()]) receiver.abandon();
  }

  private onData(mad: Uint8Array, header: MadHeader, rmpp: RmppHeader, source: MadAddress): void {
    this.services.counters.segmentsReceived++;
    const isFirst = (rmpp.flags & RMPP_FLAG.FIRST) !== 0;
    if (rmpp.status !== RMPP_STATUS.NORMAL) {
      this.answerWithAbort(mad, header, source, RMPP_STATUS.ILLEGAL_STATUS);
    } else if (isFirst !== (rmpp.segmentNumber === 1)) {
      this.answerWithAbort(mad, header, source, RMPP_STATUS.INCONSISTENT_FIRST_SEGMENT_NUMBER);
    } else {
      const key = receiveKey(header, header.method, source);
      const receiver = this.receives.get(key) ?? this.begin(key, mad, header, rmpp, source);
      if (!receiver) this.services.counters.segmentsDropped++;
      else if (receiver.receive(mad, rmpp)) this.agent.noteArriving(header, source);
    }
  }

  /** Begins a new incoming transfer, if there is room and the agent expects it. */
  private begin(
    key: string,
    mad: Uint8Array,
    header: MadHeader,
    rmpp: RmppHeader,
    source: MadAddress,
  ): RmppReceiver | undefined {
    if (rmpp.segmentNumber !== 1 || !this.agent.expects(header, source)) return undefined;
    const { allowance } = this.services;
    const headers = headersOf(mad, header);
    const peer = source.gid.join('.');
    if (!allowance.admit(peer)) {
      this.services.counters.transfersRefused++;
      this.control.stop(headers, source, RMPP_STATUS.RESOURCES_EXHAUSTED);
      return undefined;
    }
    const receiver = new RmppReceiver(
      { ...this.services, control: this.control },
      {
        headers,
        peer: source,
        deliver: (data) => this.agent.takeTransfer(data, header, source),
        onEnd: () => allowance.dismiss(peer),
        forget: () => this.receives.delete(key),
      },
    );
    this.receives.set(key, receiver);
    return receiver;
  }

  private onAck(mad: Uint8Array, header: MadHeader, rmpp: RmppHeader, source: MadAddress): void {
    const { segmentNumber, payloadLengthOrNewWindowLast: newWindowLast } = rmpp;
    if (rmpp.status !== RMPP_STATUS.NORMAL) {
      this.violate(mad, header, source, RMPP_STATUS.ILLEGAL_STATUS);
    } else if (newWindowLast < segmentNumber) {
      this.violate(mad, header, source, RMPP_STATUS.NEW_WINDOW_LAST_TOO_SMALL);
    } else {
      const sender = this.sends.get(ackKey(header, source));
      if (!sender && segmentNumber === 0) this.onTurn(header, newWindowLast, source);
      const status = sender?.acknowledge(mad, segmentNumber, newWindowLast) ?? 0;
      if (status !== 0) this.answerWithAbort(mad, header, source, status);
    }
  }

  /**
   * Handles the turning ACK: the peer has the last ACK of its request, and waits for our response.
   */
  private onTurn(header: MadHeader, newWindowLast: number, source: MadAddress): void {
    const receiver = this.receives.get(receiveKey(header, header.method, source));
    if (receiver?.isComplete) receiver.replyWindow = newWindowLast;
  }

  private onStop(mad: Uint8Array, header: MadHeader, rmpp: RmppHeader, source: MadAddress): void {
    if (rmpp.status !== RMPP_STATUS.RESOURCES_EXHAUSTED) {
      this.violate(mad, header, source, RMPP_STATUS.ILLEGAL_STATUS);
    } else this.end(header, rmpp.status, source);
  }

  private onAbort(mad: Uint8Array, header: MadHeader, rmpp: RmppHeader, source: MadAddress): void {
    const { status } = rmpp;
    if (status < RMPP_STATUS.TOTAL_TIME_TOO_LONG || status > RMPP_STATUS.UNSPECIFIED) {
      this.violate(mad, header, source, RMPP_STATUS.ILLEGAL_STATUS);
    } else this.end(header, status, source);
  }

  /** Handles the end of a transfer by the peer, whether it receives or sends it. */
  private end(header: MadHeader, status: number, source: MadAddress): void {
    this.sends.get(ackKey(header, source))?.abortedByPeer(status);
    this.receives.get(receiveKey(header, header.method, source))?.abort();
  }

  /** Ends the transfer that a violation belongs to, if it is ours, and tells the peer why. */
  private violate(mad: Uint8Array, header: MadHeader, source: MadAddress, status: number): void {
    this.sends.get(ackKey(header, source))?.refuse(status);
    this.answerWithAbort(mad, header, source, status);
  }

  private answerWithAbort(
    mad: Uint8Array,
    header: MadHeader,
    source: MadAddress,
    status: number,
  ): void {
    this.services.counters.violations++;
    this.control.abort(headersOf(mad, header), source, status);
  }
}

function headersOf(mad: Uint8Array, { managementClass }: MadHeader): Uint8Array {
  return mad.slice(0, classHeaderLength(managementClass, true));
}

function transactionOf(header: MadHeader, peer: MadAddress): string {
  const { transactionIdHi, transactionIdLo, managementClass } = header;
  return `${transactionIdHi}:${transactionIdLo}:${managementClass}:${peer.gid.join('.')}`;
}

/** Key of an outgoing transfer: by its own method, or by the method of the peer's MADs about it. */
function sendKey(header: MadHeader, peer: MadAddress): string {
  return `${transactionOf(header, peer)}:${header.method & METHOD_RESPONSE_BIT}`;
}

function ackKey(header: MadHeader, peer: MadAddress): string {
  return `${transactionOf(header, peer)}:${~header.method & METHOD_RESPONSE_BIT}`;
}

/** Key of an incoming transfer. */
function receiveKey(header: MadHeader, method: number, peer: MadAddress): string {
  return `${transactionOf(header, peer)}:${header.classVersion}:${method}:${peer.qpn}`;
}
