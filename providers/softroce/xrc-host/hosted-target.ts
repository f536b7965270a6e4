/** A hold on a target QP of the host process. */
import {
  type CmAcceptOptions,
  type CmElsewhere,
  type CmEvent,
  type HandedRequest,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairEventHandler,
  Ring,
  SpiError,
  sqeBytes,
} from '../../../core/spi/index.js';
import type { HostLink } from './host-link.js';
import { handedAnswerOf, handedReqOf } from './messages.js';

export interface TargetHooks {
  readonly onDestroy: () => void;
  /** Events of the connection that it has been accepted for are to come here. */
  readonly onAccept: (onEvent: (event: CmEvent) => void) => void;
}

export class HostedTarget implements QueuePair, CmElsewhere {
  readonly type = QpType.XRC_TGT;
  readonly cmElsewhere: CmElsewhere = this;
  readonly receiveRing = undefined;
  readonly sendRing = Ring.allocate(1, sqeBytes(1));
  private destroyed = false;

  constructor(
    readonly qpn: number,
    private readonly link: Pick<HostLink, 'ask'>,
    public eventHandler: QueuePairEventHandler,
    private readonly hooks: TargetHooks,
  ) {}

  /** ERR when the host has ended. */
  get state(): QpState {
    try {
      return this.query().state ?? QpState.ERR;
    } catch {
      return QpState.ERR;
    }
  }

  ringSendDoorbell(): void {
    throw new SpiError('EINVAL', 'a target has no send queue');
  }

  ringReceiveDoorbell(): void {
    throw new SpiError('EINVAL', 'a target has no receive queue');
  }

  modify(attributes: QueuePairAttributes): void {
    this.link.ask({ op: 'modify', qpn: this.qpn, attributes });
  }

  query(): Readonly<QueuePairAttributes> {
    return this.link.ask({ op: 'query', qpn: this.qpn }) as QueuePairAttributes;
  }

  accept(request: HandedRequest, options: CmAcceptOptions): void {
    const { qpn, link } = this;
    link.ask({ op: 'accept', qpn, ...handedReqOf(request), ...handedAnswerOf(options) });
    this.hooks.onAccept(options.onEvent);
  }

  /** A host that has ended answers nothing. */
  repeat(request: HandedRequest): void {
    askIfThere(this.link, { op: 'repeat', ...handedReqOf(request) });
  }

  /** Empty: the host has the flight record. */
  flightRecord(): readonly string[] {
    return [];
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.hooks.onDestroy();
    askIfThere(this.link, { op: 'release', qpn: this.qpn });
  }
}

/** Ends something at the host: of a host that has ended nothing is left. */
export function askIfThere(
  link: Pick<HostLink, 'ask'>,
  request: Parameters<HostLink['ask']>[0],
): void {
  try {
    link.ask(request);
  } catch (error) {
    if (!(error instanceof SpiError) || error.code !== 'EIO') throw error;
  }
}
