/** An agent for management datagrams, as `ia.mad.registerAgent` makes it. */
import { hex, showAs } from '../../spi/checks/index.js';
import { changeHold, HOLD, hasRef } from '../../spi/time/hold.js';
import { DatError, spiCall, toDatError } from '../../errors/index.js';
import {
  GSI_QKEY,
  ipFromGid,
  type MadAgent as ModuleAgent,
  type MadHeader,
  type MadModule,
  type MadSendHandle,
  type MadSendResult,
  type ReceivedMad,
  WcStatus,
} from '../../spi/index.js';
import { Inbox, type Observable } from '../../stream/index.js';
import { interruptedError } from '../../evd/queue/waiter.js';
import { sourceIndex } from '../common/ip-address.js';
import type { AdapterServices } from '../common/adapter-state.js';
import {
  checkMadRequest,
  checkMadRespond,
  checkMadSend,
  type CheckedSend,
  type MadRequestOptions,
  type MadRespondOptions,
  type MadSendOptions,
} from './checks.js';
import {
  answeredTwice,
  failureOf,
  type ManagementDatagram,
  type ManagementRequest,
} from './datagram.js';
import { composeMad, type MadFormat, readMad } from './message.js';

/** @internal parts of an agent */
export interface ManagementAgentInit {
  readonly id: number;
  readonly context: AdapterServices;
  readonly module: MadModule;
  readonly format: MadFormat;
  readonly classVersion: number;
  readonly methods: readonly number[];
  readonly onRequest: ((request: ManagementRequest) => void | Promise<void>) | undefined;
  readonly queueLength: number;
  readonly onUnregister: (agent: ManagementAgent) => void;
}

interface Pending {
  readonly settle: (result: MadSendResult) => void;
  response: ManagementDatagram | undefined;
}

const RESPONSE_BIT = 0x80;
const RESPOND = 'request.respond';

/**
 * Made by `ia.mad.registerAgent()`. An agent with methods keeps the process alive until it is
 * unregistered, unless `unref()`.
 */
export class ManagementAgent {
  static {
    showAs(this, 'ManagementAgent', ({ id, init, ended }) => ({
      id,
      managementClass: hex(init.format.managementClass),
      methods: init.methods.length,
      unregistered: ended !== undefined,
    }));
  }

  readonly id: number;
  /** Requests dropped because the queue was full, or nothing took them. */
  droppedRequests = 0;
  private readonly agent: ModuleAgent;
  private readonly inbox: Inbox<ManagementRequest>;
  private readonly pending = new Map<number, Pending>();
  /** Calls of the consumer that have not settled. */
  private readonly calls = new Set<Promise<unknown>>();
  private nextTransaction: number;
  private ended: Promise<void> | undefined;
  /** Bits of HOLD. */
  private hold = 0;

  /** @internal */
  constructor(private readonly init: ManagementAgentInit) {
    const { context, module, format, classVersion, methods, queueLength } = init;
    this.id = init.id;
    this.nextTransaction = context.random.u32();
    this.inbox = new Inbox('agent.requests$', queueLength, context.scheduler);
    this.agent = spiCall({ operation: 'ia.mad.registerAgent' }, () =>
      module.registerAgent({
        managementClass: format.managementClass,
        classVersion,
        methods,
        rmpp: format.rmpp,
        ...(format.oui === undefined ? {} : { oui: format.oui }),
        onReceive: (received) => this.onReceive(received),
        onSend: (result) => this.pending.get(result.handle.context as number)?.settle(result),
      }),
    );
    this.change(HOLD.ENGAGED, methods.length > 0);
  }

  /** Lets waiting for requests keep the process alive: the default. @returns itself */
  ref(): this {
    return this.change(HOLD.UNREF, false);
  }

  /**
   * Lets the process exit while waiting for requests, as `unref` of node:net. A pending request of
   * its own still keeps it alive.
   */
  unref(): this {
    return this.change(HOLD.UNREF, true);
  }

  /** True if waiting for requests keeps the process alive. */
  hasRef(): boolean {
    return hasRef(this.hold);
  }

  /** Requests to this agent, if it was registered without `onRequest`. One subscriber. */
  get requests$(): Observable<ManagementRequest> {
    return this.inbox.stream$;
  }

  /**
   * Sends a datagram that expects no response. Resolves when it has been sent; with RMPP, when it
   * has arrived.
   * @throws DatError (rejects) DAT_INVALID_PARAMETER, DAT_LENGTH_ERROR, DAT_INVALID_ADDRESS,
   * DAT_INVALID_HANDLE (unregistered), DAT_TIMEOUT_EXPIRED (no ACK), DAT_ABORT (unregistered, IA
   * closed or device gone meanwhile), DAT_INTERNAL_ERROR (the peer ended the transfer, or the
   * request failed)
   */
  send(options: MadSendOptions): Promise<void> {
    return this.track(this.tell('agent.send', options));
  }

  /**
   * Sends a request, and resolves with the response.
   * @throws DatError (rejects) as `send`; DAT_TIMEOUT_EXPIRED: no response to any of the retries;
   * DAT_INTERRUPTED_CALL when `signal` fires
   */
  request(options: MadRequestOptions): Promise<ManagementDatagram> {
    return this.track(this.ask('agent.request', options));
  }

  private async tell(operation: string, options: MadSendOptions): Promise<void> {
    this.begin(operation, options);
    await this.post(operation, checkMadSend(operation, options, this.init.format), 0, undefined);
  }

  private async ask(operation: string, options: MadRequestOptions): Promise<ManagementDatagram> {
    this.begin(operation, options);
    const checked = checkMadRequest(operation, options, this.init.format);
    const { timeoutMs, signal } = checked;
    if (signal?.aborted === true) throw interruptedError(operation, signal);
    const response = await this.post(operation, checked, timeoutMs * 1000, signal);
    if (response) return response;
    throw new DatError('DAT_INTERNAL_ERROR', { operation, message: 'the response is missing' });
  }

  /**
   * Ends the agent: it receives nothing any more, and pending sends end with DAT_ABORT. Resolves
   * when all have ended. Again: no-op.
   */
  unregister(): Promise<void> {
    const { context, onUnregister } = this.init;
    if (this.ended === undefined) {
      context.trace?.('agent.unregister', { agent: this.id });
      this.ended = this.endCalls();
      onUnregister(this);
      this.change(HOLD.ENGAGED, false);
    }
    return this.ended;
  }

  /** Unregisters. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.unregister();
  }

  private async endCalls(): Promise<void> {
    await this.agent.unregister();
    await Promise.allSettled(this.calls);
    this.inbox.complete();
  }

  private track<T>(call: Promise<T>): Promise<T> {
    const forget = (): void => void this.calls.delete(call);
    this.calls.add(call);
    call.then(forget, forget);
    return call;
  }

  private change(bit: number, on: boolean): this {
    this.hold = changeHold(this.init.context.processHold, this.hold, bit, on);
    return this;
  }

  private begin(operation: string, options: Partial<MadSendOptions> | undefined): void {
    this.init.context.trace?.(operation, { agent: this.id, address: options?.address });
    this.checkRegistered(operation);
  }

  private checkRegistered(operation: string): void {
    if (this.ended === undefined) return;
    throw new DatError('DAT_INVALID_HANDLE', {
      operation,
      message: `agent ${this.id} has been unregistered`,
      value: this,
    });
  }

  private post(
    operation: string,
    send: CheckedSend,
    timeoutUs: number,
    signal: AbortSignal | undefined,
  ): Promise<ManagementDatagram | undefined> {
    const { format, classVersion } = this.init;
    const { method, attributeId, attributeModifier } = send;
    const header: MadHeader = {
      baseVersion: 1,
      managementClass: format.managementClass,
      classVersion,
      method,
      status: 0,
      classSpecific: 0,
      transactionIdHi: this.agent.hiTid,
      transactionIdLo: this.newTransaction(),
      attributeId,
      attributeModifier,
    };
    return this.launch(operation, header, send, timeoutUs, signal);
  }

  /** Posts it, and settles when it is reported. */
  private async launch(
    operation: string,
    header: MadHeader,
    { gid, qpn, data, retries }: Pick<CheckedSend, 'gid' | 'qpn' | 'data' | 'retries'>,
    timeoutUs: number,
    signal: AbortSignal | undefined,
  ): Promise<ManagementDatagram | undefined> {
    const { context, format } = this.init;
    const mad = composeMad(format, header, data);
    const key = this.newTransaction();
    const localGidIndex = sourceIndex(operation, context.device, gid);
    const destination = { gid, localGidIndex, qpn, qkey: GSI_QKEY };
    return new Promise((resolve, reject) => {
      let handle: MadSendHandle | undefined;
      const onAbort = (): void => void (handle && this.agent.cancel(handle));
      const settle = (result: MadSendResult): void => {
        const response = this.pending.get(key)?.response;
        this.pending.delete(key);
        signal?.removeEventListener('abort', onAbort);
        context.processHold.release();
        if (result.status === WcStatus.SUCCESS) resolve(response);
        else if (signal?.aborted === true) reject(interruptedError(operation, signal));
        else reject(failureOf(operation, { header, gid, timeoutUs, retries }, result));
      };
      this.pending.set(key, { settle, response: undefined });
      context.processHold.retain();
      try {
        handle = spiCall({ operation, map: GONE }, () =>
          this.agent.send({ destination, data: mad, timeoutUs, retries, context: key }),
        );
        signal?.addEventListener('abort', onAbort, { once: true });
      } catch (error) {
        this.pending.delete(key);
        context.processHold.release();
        throw error;
      }
    });
  }

  private onReceive({ data, source, request }: ReceivedMad): void {
    const mad = readMad(this.init.format, data);
    if (!mad) return;
    const { method, status, attributeId, attributeModifier } = mad.header;
    const address = ipFromGid(source.gid);
    const datagram = { address, method, status, attributeId, attributeModifier, data: mad.data };
    if (request) {
      const pending = this.pending.get(request.context as number);
      if (pending) pending.response = datagram;
    } else this.offer(this.requestOf(datagram, mad.header, source));
  }

  private requestOf(
    datagram: ManagementDatagram,
    header: MadHeader,
    source: ReceivedMad['source'],
  ): ManagementRequest {
    let answered = false;
    return {
      ...datagram,
      respond: (options = {}) => {
        if (answered) return Promise.reject(answeredTwice());
        let checked: ReturnType<typeof checkMadRespond>;
        try {
          checked = this.checkAnswer(options);
        } catch (error) {
          return Promise.reject(toDatError(error, { operation: RESPOND }));
        }
        answered = true;
        const { status, attributeModifier = header.attributeModifier, data, retries } = checked;
        const method = header.method | RESPONSE_BIT;
        const response = { ...header, method, status, attributeModifier };
        return this.answer(response, { ...source, data, retries });
      },
    };
  }

  /** Ignoring whether an answer arrives must not be an unhandled rejection. */
  private answer(
    response: MadHeader,
    send: Pick<CheckedSend, 'gid' | 'qpn' | 'data' | 'retries'>,
  ): Promise<void> {
    const sent = this.launch(RESPOND, response, send, 0, undefined).then(() => undefined);
    sent.catch(() => undefined);
    return this.track(sent);
  }

  private checkAnswer(options: MadRespondOptions): ReturnType<typeof checkMadRespond> {
    this.checkRegistered(RESPOND);
    return checkMadRespond(RESPOND, options, this.init.format);
  }

  private offer(request: ManagementRequest): void {
    const { onRequest, context } = this.init;
    if (onRequest) {
      const running = onRequest(request);
      running?.catch((error: unknown) => {
        context.logger.error('a handler of requests to a MAD agent rejected', { error });
      });
    } else if (!this.inbox.push(request)) this.droppedRequests++;
  }

  private newTransaction(): number {
    return (this.nextTransaction = (this.nextTransaction + 1) >>> 0);
  }
}

const GONE = { ENODEV: ['DAT_ABORT'] } as const;
