/** Asking for the queue pair of a datagram service (SIDR), through a UDP identifier. */
import { CmPrivateData, nameOf, Timer } from '../../../core/spi/index.js';
import type { CmResolution, CmResolveOptions, CmResolveResult } from '../../../core/spi/index.js';
import { checkPeer, checkPrivateData } from '../../../plugins/cm/provider.js';
import { peerText, serviceOf } from './address.js';
import type { CmNativeEvent } from './channel.js';
import { checkDevice, failureText, messageOf } from './connection.js';
import type { CmIdOwner, CmServices } from './connection.js';
import { CmEventType } from '../addon/rdmacm.js';

type ResolutionState = 'ADDR_QUERY' | 'ROUTE_QUERY' | 'SIDR_REQ_SENT' | 'IDLE';

const NOTHING = new Uint8Array(0);
const NO_ANSWER = { status: -1, qpn: 0, qkey: 0, privateData: NOTHING } as const;

export class VerbsResolution implements CmResolution, CmIdOwner {
  state: ResolutionState = 'ADDR_QUERY';
  private cancelled = false;
  private readonly deadline = new Timer(() => {
    this.end({ ...NO_ANSWER, failure: 'timed-out' });
  });

  private constructor(
    private readonly services: CmServices,
    private readonly id: number,
    private readonly options: CmResolveOptions,
  ) {
    services.own(id, this);
    const { timers, clock } = services;
    const { timeoutUs } = options;
    if (timeoutUs < Infinity) timers.start(this.deadline, clock.now() + timeoutUs);
  }

  /** @throws SpiError as CmModule.resolve; also what rdma_cm refuses at once */
  static begin(services: CmServices, given: CmResolveOptions): VerbsResolution {
    checkPeer(given);
    checkPrivateData('SIDR_REQ', given.privateData, CmPrivateData.SIDR_REQ);
    const { portSpace, port } = serviceOf(given.serviceId);
    const { calls, addresses, channel, resolveTimeoutMs } = services;
    const path = addresses.pathTo(given.remoteGid, port, given.localGidIndex);
    const id = calls.createId(channel, portSpace);
    try {
      calls.resolveAddress(id, path.source, path.destination, resolveTimeoutMs);
    } catch (error) {
      calls.destroyId(id);
      throw error;
    }
    const options = {
      ...given,
      remoteGid: given.remoteGid.slice(),
      privateData: given.privateData.slice(),
    };
    return new VerbsResolution(services, id, options);
  }

  cancel(): void {
    this.cancelled = true;
    this.close();
  }

  close(): void {
    this.end(undefined);
  }

  onNativeEvent(event: CmNativeEvent): void {
    switch (`${this.state} ${nameOf(CmEventType, event.type)}`) {
      case 'ADDR_QUERY ADDR_RESOLVED':
        this.attempt('ROUTE_QUERY', () => this.resolveRoute());
        return;
      case 'ROUTE_QUERY ROUTE_RESOLVED':
        this.attempt('SIDR_REQ_SENT', () => this.sendRequest());
        return;
      case 'SIDR_REQ_SENT ESTABLISHED': {
        const { qpn, qkey, privateData } = event;
        this.end({ status: 0, qpn, qkey, privateData });
        return;
      }
      default:
        this.onFailure(event);
    }
  }

  private resolveRoute(): void {
    checkDevice(this.services, this.id);
    this.services.calls.resolveRoute(this.id, this.services.resolveTimeoutMs);
  }

  private sendRequest(): void {
    const parameters = {
      qpn: 0,
      responderResources: 0,
      initiatorDepth: 0,
      retryCount: 0,
      rnrRetryCount: 0,
      usesSharedReceives: false,
    };
    this.services.calls.connect(this.id, parameters, this.options.privateData);
  }

  /** A positive status is the peer's answer; everything else is none. */
  private onFailure(event: CmNativeEvent): void {
    const { type, status, privateData } = event;
    if (type === CmEventType.ADDR_CHANGE) return;
    if (type === CmEventType.UNREACHABLE && status > 0) {
      this.end({ status, qpn: 0, qkey: 0, privateData });
    } else {
      this.fail(failureText(event));
    }
  }

  private attempt(next: ResolutionState, call: () => void): void {
    this.state = next;
    try {
      call();
    } catch (error) {
      this.fail(messageOf(error));
    }
  }

  private fail(why: string): void {
    const { device, logger } = this.services;
    const peer = peerText(this.options.remoteGid);
    logger.debug(`CM: no answer from ${peer} to ${device.name}: ${why}`);
    this.end({ ...NO_ANSWER, failure: 'unreachable' });
  }

  /** The result, once; undefined for none. */
  private end(result: CmResolveResult | undefined): void {
    if (this.state === 'IDLE') return;
    this.state = 'IDLE';
    this.services.timers.stop(this.deadline);
    this.services.destroyId(this.id);
    if (!result) return;
    this.services.defer(() => {
      if (!this.cancelled) this.options.onResult(result);
    });
  }
}
