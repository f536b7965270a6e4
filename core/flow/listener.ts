/** `listen`: the passive side. */
import type { Cr } from '../dat/connect/cr.js';
import type { ServicePoint } from '../dat/connect/service-point.js';
import { Ia } from '../dat/ia/ia.js';
import type { Evd } from '../evd/index.js';
import { checkValue, instanceOf, showAs } from '../spi/checks/index.js';
import { CmPrivateData, leaveUnhandled } from '../spi/index.js';
import { Connection } from './connection.js';
import { FlowError, flowCall, refusalOf, rejection, toFlowError } from './flow-error.js';
import { Inbox, iterate } from './inbox.js';
import {
  checkListen,
  checkPrivateData,
  type ConnectionPlan,
  type ListenAnswer,
  type ListenOptions,
  planOf,
} from './options.js';
import { checkWait, NO_OPTIONS, type WaitOptions } from './wait.js';

const IA = instanceOf(Ia, 'an Ia, from openIa()');
const BACKLOG = 128;
const EMPTY = new Uint8Array(0);
const OPERATION = 'listen';

/** Made by `listen`. It keeps the process alive until it is closed, unless `unref()`. */
export class Listener implements AsyncIterable<Connection> {
  static {
    showAs(this, 'Listener', ({ port, ready, opening, isClosed: closed }) => {
      return { port, ready: ready.size, opening: opening.size, closed };
    });
  }

  /** Port that peers connect to. */
  readonly port: number;
  /** The DAT service point beneath. */
  readonly psp: ServicePoint;
  private readonly plan: ConnectionPlan;
  private readonly backlog: number;
  private readonly answer: ListenAnswer;
  private readonly signal: AbortSignal | undefined;
  private readonly evd: Evd;
  private readonly ready: Inbox<Connection>;
  /** Requests that are being answered. */
  private readonly opening = new Set<Promise<void>>();
  /** Connections being established. */
  private readonly young = new Set<Connection>();
  private isOver = false;
  private closed: Promise<void> | undefined = undefined;

  /** @internal @throws FlowError */
  constructor(
    readonly ia: Ia,
    options: ListenOptions,
  ) {
    const { port = 0, backlog = BACKLOG, answer = acceptAll, signal } = options;
    this.plan = planOf(OPERATION, ia, options);
    this.backlog = backlog;
    this.answer = answer;
    this.signal = signal;
    this.ready = new Inbox<Connection>(ia.core.context, () => this.admitLater());
    const handler = (): void => this.admit();
    const evd = flowCall(OPERATION, () =>
      ia.createEvd({ qlen: backlog, policy: 'NOTIFY', handler }),
    );
    this.evd = evd;
    try {
      this.psp = port === 0 ? ia.createPspAny({ evd }) : ia.createPsp({ connQual: port, evd });
    } catch (error) {
      leaveUnhandled(evd.free());
      throw toFlowError(OPERATION, error);
    }
    this.port = this.psp.connQual;
    ia.core.closers.add(this.onIaClosing);
    signal?.addEventListener('abort', this.onAbort, { once: true });
  }

  get isClosed(): boolean {
    return this.isOver;
  }

  /**
   * The oldest connection that has not been taken, or the next.
   * @throws FlowError, as a rejection: DAT_CONN_CLOSED when it is closed; DAT_TIMEOUT_EXPIRED,
   * DAT_INTERRUPTED_CALL, without losing a connection
   */
  accept(options: WaitOptions = NO_OPTIONS): Promise<Connection> {
    const operation = 'listener.accept';
    try {
      checkWait(operation, options);
      return this.ready.take(operation, options);
    } catch (error) {
      return rejection(operation, error);
    }
  }

  /** Connections, until it is closed. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Connection> {
    return iterate(
      () => this.accept(),
      () => this.isClosed,
    );
  }

  /**
   * Stops listening. Unanswered requests are refused, connections that nothing has taken are
   * closed, and iterations end. Connections that have been taken stay open. Resolves when that is
   * done; later calls resolve with the first.
   */
  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Keeps the process alive while listening: the default. */
  ref(): this {
    this.psp.ref();
    this.evd.ref();
    return this;
  }

  /** Lets the process exit while listening, as `unref` of node:net. */
  unref(): this {
    this.psp.unref();
    this.evd.unref();
    return this;
  }

  private readonly onIaClosing = (): void => leaveUnhandled(this.close());
  private readonly onAbort = (): void => leaveUnhandled(this.close());

  private async end(): Promise<void> {
    this.isOver = true;
    this.ia.core.closers.delete(this.onIaClosing);
    this.signal?.removeEventListener('abort', this.onAbort);
    if (!this.psp.isFreed) this.psp.free();
    for (let event = this.evd.dequeue(); event !== undefined; event = this.evd.dequeue()) {
      if (event.type === 'connection-request') event.cr.reject();
    }
    const evdFreed = this.evd.free();
    this.ready.end(
      (operation) =>
        new FlowError('DAT_CONN_CLOSED', { operation, message: 'the listener has been closed' }),
    );
    const left = [...this.ready.drop(), ...this.young];
    await Promise.all([...left.map((conn) => conn.close()), ...this.opening, evdFreed]);
  }

  /** Takes requests while there is room; the others wait in the event dispatcher. */
  private admit(): void {
    while (!this.isClosed && this.opening.size + this.ready.size < this.backlog) {
      const event = this.evd.dequeue();
      if (event === undefined) return;
      if (event.type === 'connection-request') this.meet(event.cr);
    }
  }

  /** A connection has been taken: makes room for another one. */
  private admitLater(): void {
    if (!this.isClosed) this.admit();
  }

  private meet(cr: Cr): void {
    const met = this.respond(cr)
      .catch((error: unknown) => this.report(error))
      .finally(() => {
        this.opening.delete(met);
        if (!this.isClosed) this.admit();
      });
    this.opening.add(met);
  }

  private async respond(cr: Cr): Promise<void> {
    let privateData: Uint8Array | undefined;
    try {
      privateData = await this.ask(cr);
    } catch (error) {
      refuse(cr, EMPTY);
      throw error;
    }
    if (cr.isFreed) return;
    if (this.isClosed) return refuse(cr, EMPTY);
    await this.open(cr, privateData ?? EMPTY);
  }

  private async ask(cr: Cr): Promise<Uint8Array | undefined> {
    const { remoteAddress: address, remotePort: port, privateData } = cr.query();
    const refused = (data: Uint8Array = EMPTY): undefined => {
      checkPrivateData('request.refuse', data, CmPrivateData.REJ);
      refuse(cr, data);
    };
    const answered = await this.answer({ address, port, privateData, refuse: refused });
    if (answered !== undefined) checkPrivateData(OPERATION, answered, CmPrivateData.REP);
    return answered ?? undefined;
  }

  private async open(cr: Cr, privateData: Uint8Array): Promise<void> {
    let conn: Connection;
    try {
      conn = new Connection(this.ia, OPERATION, this.plan);
    } catch (error) {
      refuse(cr, EMPTY);
      throw error;
    }
    this.young.add(conn);
    try {
      await conn.answer(cr, privateData);
    } catch (error) {
      refuse(cr, EMPTY);
      throw error;
    } finally {
      this.young.delete(conn);
    }
    if (this.isClosed) await conn.close();
    else this.ready.put(conn);
  }

  /** A failed request does not end listening. */
  private report(error: unknown): void {
    if (this.isOver) return;
    const { logger } = this.ia.core.context;
    logger.warn(`listener on port ${this.port}: a request came to nothing`, {
      error: String(error),
    });
  }
}

/** Refuses the request unless it has been answered. */
function refuse(cr: Cr, privateData: Uint8Array): void {
  if (!cr.isFreed) cr.reject({ privateData });
}

const acceptAll = (): undefined => undefined;

/**
 * Listens on a port of the adapter.
 * @throws FlowError, as a rejection: DAT_CONN_QUAL_IN_USE; DAT_INVALID_PARAMETER;
 * DAT_INTERRUPTED_CALL when `signal` has fired before
 */
export const listen = async (ia: Ia, options: ListenOptions): Promise<Listener> => {
  checkValue('ia', ia, IA, refusalOf(OPERATION));
  checkListen(OPERATION, options);
  checkWait(OPERATION, { signal: options.signal });
  return new Listener(ia, options);
};
