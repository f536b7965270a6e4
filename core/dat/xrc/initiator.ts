/**
 * XRC initiator: an endpoint whose one connection reaches every shared receive queue in the domain
 * of the peer's target. Each request names one; the rest is as with any endpoint.
 */
import { showAs } from '../../spi/checks/index.js';
import { spiCall } from '../../errors/index.js';
import type { XrcDomain as XrcHold } from '../../spi/index.js';
import { beginConnect } from '../endpoint/connecting.js';
import { Ep } from '../endpoint/ep.js';
import { epFacts } from '../endpoint/lifecycle.js';
import type { EndpointMaker } from '../endpoint/endpoint-maker.js';
import type { EpInit } from '../endpoint/types.js';
import { checkInteger, checkOptions } from '../../errors/guards.js';
import type { AdapterState } from '../common/adapter-state.js';
import { checkAttachOptions, DirectConnection, type XrcAttachOptions } from './direct.js';
import type { XrcDomain, XrcInitiatorOptions } from './domain.js';

/** Numbers of shared receive queues have 24 bits; 0 is none. */
export const MAX_SRQN = 0xffffff;

/** Made by `domain.createInitiator()`. */
export class XrcInitiator extends Ep {
  static {
    showAs(this, 'XrcInitiator', ({ record, domain, srqn }) => {
      return { ...epFacts(record), domain, srqn };
    });
  }

  /** @internal */
  constructor(
    core: AdapterState,
    readonly domain: XrcDomain,
    init: EpInit & { readonly xrc: XrcHold },
  ) {
    super(core, init);
    domain.users++;
  }

  /** @internal */
  override destroy(by: string): void {
    super.destroy(by);
    this.domain.users--;
  }

  /**
   * Sets the receiver: later posts are for that queue of the peer. It holds until another one is
   * set, or until `ep.reset()`. The number comes from the peer, out of band. Allocates nothing:
   * `initiator.toSrq(srqn).postSend(segment, cookie)`.
   * @param srqn 1 to 2^24 - 1. One that does not exist there ends the connection: the request
   * completes as REMOTE_RESPONDER
   * @throws DatError DAT_INVALID_PARAMETER
   */
  toSrq(srqn: number): this {
    this.record.assertLive('initiator.toSrq');
    checkInteger('initiator.toSrq', 'srqn', srqn, 1, MAX_SRQN);
    this.record.queues.srqn = srqn;
    return this;
  }

  /** The queue set at present; 0 for none. */
  get srqn(): number {
    return this.record.queues.srqn;
  }

  /**
   * Connects the initiator to a target whose numbers are known without a connection request: one
   * made by `domain.createTarget`, with this endpoint's `qpn` as its destination. ESTABLISHED
   * follows on the connect EVD. The target is not asked, and its end is not announced: then
   * requests fail.
   * @throws DatError DAT_INVALID_STATE unless UNCONNECTED; DAT_INVALID_ADDRESS;
   * DAT_INVALID_PARAMETER
   */
  attach(options: XrcAttachOptions): void {
    const operation = 'initiator.attach';
    const { record } = this;
    const { connection, attributes, core, queues } = record;
    const { device, scheduler } = core.context;
    beginConnect(record, operation, { targetQpn: options?.targetQpn });
    const plan = checkAttachOptions(operation, options, device, attributes);
    spiCall({ operation, value: options.address }, () =>
      connection.connect(
        0,
        (onEvent) => new DirectConnection(queues.qp, plan, attributes, scheduler, onEvent),
      ),
    );
  }
}

export function createInitiator(
  domain: XrcDomain,
  endpoints: EndpointMaker,
  options: XrcInitiatorOptions,
): XrcInitiator {
  const operation = 'xrc.createInitiator';
  checkOptions(operation, options, ['pz', 'requestEvd', 'connectEvd', 'attributes']);
  const { requestEvd } = options;
  // It never receives, so the EVD of its requests serves as both.
  const given = { ...options, ...(requestEvd && { recvEvd: requestEvd }) };
  return endpoints.build(
    operation,
    given,
    'UNCONNECTED',
    (init) => new XrcInitiator(domain.core, domain, { ...init, xrc: domain.hold }),
  );
}
