/** Send and receive rings over ibv_post_send and ibv_post_recv. */
import type {
  QueuePair,
  QueuePairAttributes,
  QueuePairEventHandler,
  QueuePairInit,
} from '../../core/spi/device.js';
import { nameOf, PATH_MTU_BYTES, QpState, QpType } from '../../core/spi/ib.js';
import { Ring, ringEntries, rqeBytes, sqeBytes } from '../../core/spi/ring.js';
import { SpiError } from '../../core/spi/spi-error.js';
import { memoryOf, type VerbsCompletionQueue } from './completion-queue.js';
import type { Dispatch, VerbsProtectionDomain } from './device.js';
import { check, made } from './library.js';
import type { VerbsSharedReceiveQueue } from './shared-receive-queue.js';

/** Attribute, its bit in the verbs mask, and its word for the addon. */
const ATTRIBUTES = [
  ['state', 0, 0],
  ['accessFlags', 3, 1],
  ['pkeyIndex', 4, 2],
  ['portNumber', 5, 3],
  ['pathMtuBytes', 8, 4],
  ['destinationQpn', 20, 5],
  ['receivePsn', 12, 6],
  ['sendPsn', 16, 7],
  ['maxDestRdAtomic', 17, 8],
  ['maxRdAtomic', 13, 9],
  ['minRnrTimer', 15, 10],
  ['timeout', 9, 11],
  ['retryCount', 10, 12],
  ['rnrRetryCount', 11, 13],
] as const;
const ADDRESS_VECTOR_BIT = 7;

export class VerbsQueuePair implements QueuePair {
  readonly type = QpType.RC;
  readonly number: number;
  readonly qpn: number;
  readonly sendRing: Ring;
  readonly receiveRing: Ring | undefined;
  eventHandler: QueuePairEventHandler;
  private attributes: QueuePairAttributes = {};
  private readonly transitions: string[] = [];

  constructor(
    private readonly dispatch: Dispatch,
    init: QueuePairInit,
  ) {
    this.eventHandler = init.onEvent;
    const sends = Ring.allocate(
      ringEntries(init.maxSendWr),
      sqeBytes(init.maxSendSge, init.maxInlineBytes),
    );
    const receives =
      init.srq === undefined
        ? Ring.allocate(ringEntries(init.maxReceiveWr), rqeBytes(init.maxReceiveSge))
        : undefined;
    const out = new Uint32Array(1);
    this.number = made(
      'ibv_create_qp',
      dispatch.library.createQp(
        (init.pd as VerbsProtectionDomain).number,
        (init.sendCq as VerbsCompletionQueue).number,
        (init.receiveCq as VerbsCompletionQueue).number,
        init.srq === undefined ? 0 : (init.srq as VerbsSharedReceiveQueue).number,
        ...[init.maxSendWr, init.maxReceiveWr, init.maxSendSge, init.maxReceiveSge],
        ...[init.maxInlineBytes, init.context],
        ...[memoryOf(sends), sends.entries, sends.strideBytes],
        ...[receives && memoryOf(receives), receives?.entries, receives?.strideBytes],
        out,
      ),
    );
    this.qpn = out[0] ?? 0;
    this.sendRing = sends;
    this.receiveRing = receives;
    dispatch.pairs.set(this.number, this);
  }

  get state(): QpState {
    return this.dispatch.library.qpState(this.number) as QpState;
  }

  ringSendDoorbell(): void {
    check('ibv_post_send', this.dispatch.library.postSends(this.number));
  }

  ringReceiveDoorbell(): void {
    check('ibv_post_recv', this.dispatch.library.postReceives(this.number));
  }

  modify(attributes: QueuePairAttributes): void {
    const words = new Uint32Array(ATTRIBUTES.length);
    let mask = attributes.addressVector ? 1 << ADDRESS_VECTOR_BIT : 0;
    for (const [name, bit, word] of ATTRIBUTES) {
      const value = attributes[name];
      if (value === undefined) continue;
      mask |= 1 << bit;
      words[word] = name === 'pathMtuBytes' ? PATH_MTU_BYTES.indexOf(value) : value;
    }
    const from = nameOf(QpState, this.state);
    check(`ibv_modify_qp from ${from}`, this.dispatch.library.modifyQp(this.number, mask, words));
    this.attributes = { ...this.attributes, ...attributes };
    this.transitions.push(`${from} -> ${nameOf(QpState, this.state)}`);
  }

  query(): Readonly<QueuePairAttributes> {
    return { ...this.attributes, state: this.state };
  }

  flightRecord(): readonly string[] {
    return this.transitions;
  }

  destroy(): void {
    check('ibv_destroy_qp', this.dispatch.library.destroyQp(this.number));
    this.dispatch.pairs.delete(this.number);
  }
}

/** Takes a queue pair of one device to RTS with its peer, or as far as `until`. */
export function connect(qp: QueuePair, peer: QueuePair, until: QpState = QpState.RTS): void {
  const accessFlags = 0b1111;
  if (until < QpState.INIT) throw new SpiError('EINVAL', `connect as far as ${until}`);
  qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags });
  if (until < QpState.RTR) return;
  qp.modify({
    state: QpState.RTR,
    addressVector: { gid: new Uint8Array(16), localGidIndex: 0 },
    pathMtuBytes: 4096,
    destinationQpn: peer.qpn,
    receivePsn: 0,
    maxDestRdAtomic: 16,
    minRnrTimer: 12,
  });
  if (until < QpState.RTS) return;
  qp.modify({
    state: QpState.RTS,
    timeout: 14,
    retryCount: 7,
    rnrRetryCount: 7,
    sendPsn: 0,
    maxRdAtomic: 16,
  });
}
