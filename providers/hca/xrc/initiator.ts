/**
 * XRC initiator (IBTA annex A14): an RC requester whose every request names the shared receive
 * queue at the other end. It has no responder.
 */
import { SpiError } from '../../../core/spi/index.js';
import type { QueuePairInit } from '../../../core/spi/index.js';
import type { Engine } from '../queue-pair/engine.js';
import { RcQueuePair } from '../rc/queue-pair.js';
import { noReceives } from '../srq/receive-source.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { OPCODE_BIT, XRC_BASE } from '../wire/opcode.js';
import { BITS_OF } from '../wire/packet-layout.js';
import type { SoftXrcDomain } from '../srq/xrc-domain.js';

export class XrcInitiator extends RcQueuePair {
  constructor(hca: Engine, qpn: number, init: QueuePairInit) {
    super(hca, qpn, init, noReceives(init), XRC_BASE);
    this.xrcDomain = init.xrcDomain as SoftXrcDomain;
  }

  override receive(rx: ReceivedPacket): void {
    if ((BITS_OF[rx.opcode]! & OPCODE_BIT.request) === 0) super.receive(rx);
    else this.hca.counters.drops.wrongDirection += 1;
  }

  override ringReceiveDoorbell(): void {
    throw new SpiError('EINVAL', 'an XRC initiator receives nothing');
  }
}
