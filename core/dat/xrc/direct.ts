/**
 * A connection without a connection manager: both ends know each other's numbers by other means
 * (openib-general, December 2007). Its end is not announced: a dead target shows as requests that
 * fail.
 */
import {
  type AddressVector,
  type CmConnection,
  type CmEvent,
  type Device,
  QpState,
  type QueuePair,
  type Scheduler,
} from '../../spi/index.js';
import type { EpAttributes } from '../endpoint/attributes.js';
import { checkAddressed, sourceIndex } from '../common/ip-address.js';
import { EP_ACCESS } from '../work/queues.js';
import { ANYTHING, integer } from '../../spi/checks/index.js';

const BITS_24 = 0xffffff;
const ATTACH_OPTIONS = {
  address: ANYTHING,
  targetQpn: integer(2, BITS_24),
  sendPsn: integer(0, BITS_24),
  pathMtuBytes: ANYTHING,
};

/** Options of `initiator.attach`. */
export interface XrcAttachOptions {
  /** IP address of the target's device, as text. */
  readonly address: string;
  readonly targetQpn: number;
  /** First PSN of the requests: `receivePsn` of the target. */
  readonly sendPsn: number;
  /** Path MTU in bytes, that of the target; default the endpoint's. */
  readonly pathMtuBytes?: number;
}

export interface CheckedAttachOptions {
  readonly addressVector: AddressVector;
  readonly targetQpn: number;
  readonly sendPsn: number;
  readonly pathMtuBytes: number;
}

/** @throws DatError DAT_INVALID_ADDRESS, DAT_INVALID_PARAMETER */
export function checkAttachOptions(
  operation: string,
  options: XrcAttachOptions,
  device: Device,
  attributes: EpAttributes,
): CheckedAttachOptions {
  const gid = checkAddressed(operation, options, ATTACH_OPTIONS);
  const { targetQpn, sendPsn } = options;
  const { pathMtuBytes = attributes.transport.pathMtuBytes ?? device.attributes.activeMtuBytes } =
    options;
  const localGidIndex = sourceIndex(operation, device, gid);
  return { addressVector: { gid, localGidIndex }, targetQpn, sendPsn, pathMtuBytes };
}

/** Takes the place of the CM's connection. */
export class DirectConnection implements CmConnection {
  readonly remoteGid: Uint8Array;
  /** There are no CM messages. */
  readonly localPort = 0;
  private ended = false;

  /**
   * Takes the queue pair from INIT to RTS; `established` comes in the pump.
   * @throws SpiError of the provider
   */
  constructor(
    private readonly qp: QueuePair,
    { addressVector, targetQpn, sendPsn, pathMtuBytes }: CheckedAttachOptions,
    attributes: EpAttributes,
    private readonly scheduler: Scheduler,
    private readonly onEvent: (event: CmEvent) => void,
  ) {
    this.remoteGid = addressVector.gid;
    const { ackTimeout, retryCount, rnrRetryCount } = attributes.transport;
    qp.modify({
      state: QpState.RTR,
      addressVector,
      pathMtuBytes,
      destinationQpn: targetQpn,
      // Only answers come from the target: no requests, so there is no PSN for them.
      receivePsn: 0,
      accessFlags: EP_ACCESS,
    });
    qp.modify({
      state: QpState.RTS,
      sendPsn,
      timeout: ackTimeout,
      retryCount,
      rnrRetryCount,
      maxRdAtomic: attributes.maxRdmaReadOut,
    });
    this.tell({ type: 'established', privateData: new Uint8Array(0) });
  }

  get state(): string {
    return this.ended ? 'ENDED' : 'ATTACHED';
  }

  disconnect(): void {
    if (this.ended) return;
    this.ended = true;
    if (this.qp.state !== QpState.ERR) this.qp.modify({ state: QpState.ERR });
    this.tell({ type: 'disconnected', byPeer: false });
  }

  notifyEstablished(): void {
    // It is established when the queue pair is in RTS.
  }

  abandon(): void {
    this.ended = true;
  }

  flightRecord(): readonly string[] {
    return ['attached without a connection manager'];
  }

  private tell(event: CmEvent): void {
    this.scheduler.defer(() => this.onEvent(event));
  }
}
