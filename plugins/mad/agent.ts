/**
 * An agent: a client's registration, its list of sends, and the references that unregistering waits
 * for (openib discussion of 4 October 2004).
 */
import { assert } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import {
  type Gid,
  type Logger,
  type MadAddress,
  type MadAgent,
  type MadAgentOptions,
  type MadSend as MadSendOptions,
  type MadSendHandle,
  type ReceivedMad,
  SpiError,
  WcStatus,
} from '../../core/spi/index.js';
import { MadSend, type MadSendInit, type MadSendServices } from './mad-send.js';
import { type RmppServices, RmppTransfers } from './rmpp-transfers.js';
import { checkSend } from './send-checks.js';
import { type Destination, SingleMad, type TransmissionOwner } from './transmission.js';
import { isResponse, type MadHeader } from '../../core/spi/modules/mad-header.js';
import { isRmppActive } from './wire/rmpp-header.js';

/** Services that all agents of a module share. */
export interface AgentServices extends MadSendServices {
  readonly rmpp: RmppServices;
  readonly logger: Logger;
}

/** Limit on outstanding sends of one agent. */
const MAX_SENDS = 65_536;

export class Agent implements MadAgent, TransmissionOwner {
  private readonly sends = new Set<MadSend>();
  private readonly asking = new Map<string, MadSend>();
  private readonly rmpp: RmppTransfers | undefined;
  private references = 0;
  private received: ReceivedMad | undefined;
  private resolveEnded: () => void = () => undefined;
  /** Resolves when the agent is unregistered. */
  readonly ended = new Promise<void>((resolve) => (this.resolveEnded = resolve));
  unregistering = false;

  constructor(
    readonly hiTid: number,
    readonly options: MadAgentOptions,
    private readonly services: AgentServices,
    private readonly onUnregister: (agent: Agent) => void,
  ) {
    this.rmpp = options.rmpp === true ? new RmppTransfers(services.rmpp, this) : undefined;
  }

  send(options: MadSendOptions): MadSendHandle {
    this.checkMaySend();
    const { header, transferHeader } = checkSend(options, this.options, this.hiTid);
    const { destination: peer, timeoutUs } = options;
    if (transferHeader && this.rmpp?.isSending(transferHeader, peer)) throw taken('transfer');
    const key = timeoutUs > 0 && header ? responseKey(header, peer.gid) : undefined;
    if (key !== undefined && this.asking.has(key)) throw taken('request');
    const address = this.services.port.addresses.acquire(peer.gid, peer.localGidIndex);
    const destination = { address, qpn: peer.qpn, qkey: peer.qkey };
    const makeTransmission = this.transmissionMaker(options, destination, transferHeader);
    const send = new MadSend(this.services, this, { options, destination, key, makeTransmission });
    this.sends.add(send);
    if (key !== undefined) this.asking.set(key, send);
    send.start();
    return send;
  }

  cancel(handle: MadSendHandle): void {
    this.own(handle)?.cancel();
  }

  modify(handle: MadSendHandle, timeoutUs: number): void {
    if (!(timeoutUs > 0 && timeoutUs < Infinity)) {
      throw einval('timeoutUs', timeoutUs, 'a finite number above 0');
    }
    this.own(handle)?.modify(timeoutUs);
  }

  unregister(): Promise<void> {
    if (this.unregistering) return this.ended;
    this.unregistering = true;
    this.onUnregister(this);
    this.retain();
    this.flush();
    this.release();
    return this.ended;
  }

  /** Flushes all sends: those that wait are reported here, the others by the port. */
  flush(): void {
    this.rmpp?.abandonReceives();
    for (const send of [...this.sends]) send.cancel();
  }

  /** Takes a MAD for this agent; false if it is a response that no send waits for. */
  take(received: ReceivedMad, header: MadHeader): boolean {
    if (!this.rmpp || !isRmppActive(received.data)) return this.takeWhole(received, header);
    this.rmpp.receive(received.data, header, received.source);
    return true;
  }

  // --- as sends and transfers see it -----------------------------------------------------------

  retain(): void {
    this.references++;
  }

  release(): void {
    assert(this.references > 0, 'a reference on an agent is given back once', this.hiTid);
    this.references--;
    if (this.references === 0 && this.unregistering) this.resolveEnded();
  }

  deliver(send: MadSend): void {
    const { received } = this;
    if (!received) return;
    this.forget(send);
    this.guard('receive', () => this.options.onReceive({ ...received, request: send }));
  }

  report(send: MadSend, status: WcStatus, rmppStatus: number): void {
    this.forget(send);
    this.sends.delete(send);
    this.services.port.addresses.release(send.destination.address);
    const why = status === WcStatus.REM_ABORT_ERR && rmppStatus !== 0 ? { rmppStatus } : {};
    this.guard('send', () => this.options.onSend({ handle: send, status, ...why }));
  }

  /** True if the MAD is a request, or the response to a request that waits for it. */
  expects(header: MadHeader, source: MadAddress): boolean {
    if (this.unregistering) return false;
    return !isResponse(header) || this.askerOf(header, source) !== undefined;
  }

  /** A part of the MAD has arrived. */
  noteArriving(header: MadHeader, source: MadAddress): void {
    if (isResponse(header)) this.askerOf(header, source)?.noteArriving();
  }

  /** The whole MAD has arrived; the header is its first segment's. */
  takeTransfer(data: Uint8Array, header: MadHeader, source: MadAddress): void {
    this.takeWhole({ data, source }, header);
  }

  // ----------------------------------------------------------------------------------------------

  private transmissionMaker(
    { destination: peer, timeoutUs, retries, data: given }: MadSendOptions,
    destination: Destination,
    header: MadHeader | undefined,
  ): MadSendInit['makeTransmission'] {
    const data = given.slice();
    const { rmpp } = this;
    if (!rmpp || !header) {
      const { port } = this.services;
      return (onTransmitted) => new SingleMad(port, this, data, destination, onTransmitted);
    }
    const transfer = { mad: data, header, peer, destination, timeoutUs, retries };
    return (onTransmitted) => rmpp.makeSender({ ...transfer, onTransmitted });
  }

  private takeWhole(received: ReceivedMad, header: MadHeader): boolean {
    this.retain();
    const taken = isResponse(header)
      ? this.respond(received, this.askerOf(header, received.source))
      : this.request(received);
    this.release();
    return taken;
  }

  private request(received: ReceivedMad): boolean {
    this.guard('receive', () => this.options.onReceive(received));
    return true;
  }

  private respond(received: ReceivedMad, send: MadSend | undefined): boolean {
    if (!send) return false;
    this.received = received;
    send.respond();
    this.received = undefined;
    return true;
  }

  /** The send that waits for this response. */
  private askerOf(header: MadHeader, source: MadAddress): MadSend | undefined {
    const send = this.asking.get(responseKey(header, source.gid));
    return send?.awaitsResponse === true ? send : undefined;
  }

  /** Forgets a send; its transaction id may be used again. */
  private forget(send: MadSend): void {
    if (send.key !== undefined && this.asking.get(send.key) === send) this.asking.delete(send.key);
  }

  private own(handle: MadSendHandle): MadSend | undefined {
    if (handle instanceof MadSend && (handle.isDone || this.sends.has(handle))) {
      return handle.isDone ? undefined : handle;
    }
    throw new SpiError('EINVAL', 'that send is not of this agent');
  }

  private checkMaySend(): void {
    if (this.unregistering) throw new SpiError('EINVAL', 'the agent has been unregistered');
    if (!this.services.port.isOpen) throw new SpiError('ENODEV', 'QP1 of the device is gone');
    if (this.sends.size >= MAX_SENDS) {
      throw new SpiError('ENOMEM', `${this.sends.size} sends outstanding: the limit of an agent`);
    }
  }

  private guard(handler: string, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.services.logger.error(`the ${handler} handler of a MAD agent threw`, { error });
    }
  }
}

function taken(what: string): SpiError {
  return new SpiError('EINVAL', `a ${what} with this transaction id is outstanding`);
}

/** Matches a response to its request: transaction id, class and peer (the rule of ib_mad). */
function responseKey(header: MadHeader, peer: Gid): string {
  const { transactionIdHi, transactionIdLo, managementClass } = header;
  return `${transactionIdHi}:${transactionIdLo}:${managementClass}:${peer.join('.')}`;
}
