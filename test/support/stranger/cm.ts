/** A connection manager as a stranger would write it: between the devices of one process. */
import {
  type CmAcceptOptions,
  type CmConnection,
  type CmConnectOptions,
  type CmEvent,
  type CmListener,
  type CmListenOptions,
  type CmModule,
  type CmParameters,
  type CmRequest,
  ipFromGid,
  QpState,
  SpiError,
} from 'dapl/spi';
import { type StrangerDevice, devices } from './device.js';

/** IBTA table 108. */
const INVALID_SERVICE_ID = 8;
const CONSUMER_REJECT = 28;
/** As long as the fields of REQ, REP and REJ are for their consumers. */
const FIELD = { request: 56, accept: 196, reject: 148 } as const;
const PSN = 7;

/** Modules by their devices. */
const modules = new Map<StrangerDevice, StrangerCm>();

export class StrangerCm implements CmModule {
  private readonly listeners = new Map<bigint, CmListenOptions>();
  private readonly connections = new Set<Connection>();

  constructor(readonly device: StrangerDevice) {
    modules.set(device, this);
  }

  listen(options: CmListenOptions): CmListener {
    const { serviceId } = options;
    if (this.listeners.has(serviceId)) {
      throw new SpiError('EADDRINUSE', `service ${serviceId} is listened on`);
    }
    this.listeners.set(serviceId, options);
    return { close: () => void this.listeners.delete(serviceId) };
  }

  connect(options: CmConnectOptions): CmConnection {
    const { qp, remoteGid, serviceId, privateData } = options;
    if (qp.state !== QpState.INIT) throw new SpiError('EINVAL', 'the queue pair is not in INIT');
    const connection = this.add(new Connection(this, options, remoteGid));
    const field = padded(privateData, FIELD.request);
    if (this.device.mutant === 'answers inside the call') {
      connection.tell({ type: 'unreachable', detail: 'nothing is there' }, true);
      return connection;
    }
    this.device.defer(() => {
      const peer = devices.get(ipFromGid(remoteGid));
      const cm = peer && modules.get(peer);
      if (cm === undefined) {
        return connection.end({ type: 'unreachable', detail: `nothing is at the address` });
      }
      const listener = cm.listeners.get(serviceId);
      if (listener?.onRequest === undefined) return connection.rejected(INVALID_SERVICE_ID);
      const { onRequest } = listener;
      const request = cm.requestOf(connection, options, field);
      cm.device.defer(() => onRequest(request));
    });
    return connection;
  }

  async close(): Promise<void> {
    for (const connection of [...this.connections]) connection.disconnect();
    modules.delete(this.device);
  }

  add(connection: Connection): Connection {
    this.connections.add(connection);
    return connection;
  }

  forget(connection: Connection): void {
    this.connections.delete(connection);
  }

  private requestOf(
    active: Connection,
    options: CmConnectOptions,
    privateData: Uint8Array,
  ): CmRequest {
    const { cm } = active;
    let answered = false;
    const answer = (): void => {
      if (answered || active.isOver) throw new SpiError('ENOTCONN', 'the request is gone');
      answered = true;
    };
    return {
      serviceId: options.serviceId,
      transport: 'rc',
      privateData,
      remoteGid: cm.device.gids[0]!,
      remotePort: 0,
      localGid: this.device.gids[0]!,
      remoteQpn: options.qp.qpn,
      responderResources: options.initiatorDepth,
      initiatorDepth: options.responderResources,
      retryCount: options.retryCount,
      rnrRetryCount: options.rnrRetryCount,
      pathMtuBytes: 4096,
      accept: (accepting: CmAcceptOptions) => {
        if (accepting.qp.state !== QpState.INIT) throw new SpiError('EINVAL', 'not in INIT');
        answer();
        const field = padded(accepting.privateData, FIELD.accept);
        const passive = this.add(new Connection(this, accepting, cm.device.gids[0]!));
        passive.pair(active);
        toRtr(accepting, active);
        cm.device.defer(() => {
          if (active.isOver) return;
          toRtr(options, passive);
          toRts(options);
          active.established(field);
          this.device.defer(() => {
            if (passive.isOver) return;
            toRts(accepting);
            passive.established(new Uint8Array());
          });
        });
        return passive;
      },
      reject: ({ reason, privateData: told }) => {
        answer();
        active.rejected(reason, padded(told, FIELD.reject));
      },
    };
  }
}

export class Connection implements CmConnection {
  readonly localPort = 0; // its requests have no port
  state = 'connecting';
  isOver = false;
  private peer: Connection | undefined;

  constructor(
    readonly cm: StrangerCm,
    readonly options: CmConnectOptions | CmAcceptOptions,
    readonly remoteGid: CmConnection['remoteGid'],
  ) {}

  pair(peer: Connection): void {
    this.peer = peer;
    peer.peer = this;
  }

  tell(event: CmEvent, atOnce = false): void {
    if (atOnce) this.options.onEvent(event);
    else this.cm.device.defer(() => this.options.onEvent(event));
  }

  established(privateData: Uint8Array): void {
    this.state = 'established';
    this.tell({ type: 'established', privateData });
    if (this.cm.device.mutant !== 'establishes twice') return;
    this.tell({ type: 'established', privateData });
  }

  rejected(reason: number, privateData: Uint8Array = new Uint8Array(FIELD.reject)): void {
    this.end({ type: 'rejected', reason, consumer: reason === CONSUMER_REJECT, privateData });
  }

  end(event: CmEvent): void {
    if (this.isOver) return;
    this.isOver = true;
    this.state = 'over';
    this.tell(event);
    this.tell({ type: 'timewait-exit' });
    this.cm.forget(this);
  }

  disconnect(): void {
    if (this.isOver) return;
    toError(this.options);
    const { peer } = this;
    if (peer !== undefined && !peer.isOver) {
      peer.cm.device.defer(() => {
        if (peer.isOver) return;
        toError(peer.options);
        peer.end({ type: 'disconnected', byPeer: true });
      });
    }
    this.end({ type: 'disconnected', byPeer: false });
  }

  notifyEstablished(): void {
    // The passive side is established in the same turn as data may come.
  }

  abandon(): void {
    this.isOver = true;
    this.cm.forget(this);
  }

  flightRecord(): readonly string[] {
    return [`connection is ${this.state}`];
  }
}

type Own = CmParameters & Pick<CmAcceptOptions, 'qp'>;

function toRtr({ qp, responderResources, minRnrTimer, accessFlags }: Own, peer: Connection): void {
  qp.modify({
    state: QpState.RTR,
    accessFlags,
    addressVector: { gid: peer.cm.device.gids[0]!, localGidIndex: 0 },
    pathMtuBytes: 4096,
    destinationQpn: peer.options.qp.qpn,
    receivePsn: PSN,
    maxDestRdAtomic: responderResources,
    minRnrTimer,
  });
}

function toRts({ qp, initiatorDepth, retryCount, rnrRetryCount }: Own): void {
  if (qp.state !== QpState.RTR) return;
  const attributes = { sendPsn: PSN, timeout: 14, retryCount, rnrRetryCount };
  qp.modify({ state: QpState.RTS, ...attributes, maxRdAtomic: initiatorDepth });
}

function toError({ qp }: Own): void {
  if (qp.state !== QpState.RESET) qp.modify({ state: QpState.ERR });
}

function padded(bytes: Uint8Array, length: number): Uint8Array {
  const field = new Uint8Array(length);
  field.set(bytes);
  return field;
}
