/**
 * The receives of an XRC target (IBTA annex A14), an RC responder without receives of its own. Each
 * message takes them from the shared receive queue that it names, completes there, and reaches the
 * memory of that queue's protection domain.
 */
import type { ReceivedPacket } from '../common/received-packet.js';
import { FAULT, type Fault } from '../connected/message-receiver.js';
import type { RcQueuePair } from '../rc/queue-pair.js';
import type { SoftSharedReceiveQueue } from '../srq/shared-receive-queue.js';
import { OPCODE_BIT } from '../../../core/spi/wire/opcode.js';
import { BITS_OF, XRCETH_OFFSET_OF } from '../../../core/spi/wire/packet-layout.js';
import { xrcethSrqn } from '../wire/extended-headers.js';

export class NamedReceives {
  /** The queue that the present message names, or the last one did. */
  private named: SoftSharedReceiveQueue | undefined = undefined;

  constructor(private readonly target: RcQueuePair) {}

  /**
   * Selects the queue that a packet names. The first packet of a message decides; the others must
   * name the same queue.
   * @returns for an XRC violation, an invalid request (IBTA annex A14): the queue does not exist, is
   * no XRC queue or belongs to another domain
   */
  select(rx: ReceivedPacket): Fault | undefined {
    const { target } = this;
    const srqn = xrcethSrqn(rx.view, rx.offset + XRCETH_OFFSET_OF[rx.opcode]!);
    const starts = (BITS_OF[rx.opcode]! & OPCODE_BIT.start) !== 0;
    const found = starts ? target.hca.sharedReceives.find(srqn) : this.named;
    if (found === undefined || found.destroyed || found.srqn !== srqn || !this.reaches(found)) {
      return FAULT.request;
    }
    if (found.failed) return FAULT.receive;
    this.named = found;
    target.receives = found;
    return undefined;
  }

  private reaches(srq: SoftSharedReceiveQueue): boolean {
    return srq.completionQueue !== undefined && srq.xrcDomain === this.target.xrcDomain;
  }
}
