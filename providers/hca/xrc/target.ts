/**
 * XRC target (IBTA annex A14): an RC responder without receives of its own. Each message takes them
 * from the shared receive queue that it names, completes there, and reaches the memory of that
 * queue's protection domain.
 */
import { SpiError, WcStatus } from '../../../core/spi/index.js';
import type { QueuePairInit } from '../../../core/spi/index.js';
import type { Engine } from '../queue-pair/engine.js';
import type { Domain } from '../memory/memory.js';
import { RcQueuePair } from '../rc/queue-pair.js';
import { noReceives } from '../srq/receive-source.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import type { SoftSharedReceiveQueue } from '../srq/shared-receive-queue.js';
import { SYNDROME } from '../wire/aeth-syndrome.js';
import { OPCODE_BIT, XRC_BASE } from '../wire/opcode.js';
import { BITS_OF, XRCETH_OFFSET_OF } from '../wire/packet-layout.js';
import { xrcethSrqn } from '../wire/xrceth.js';
import type { SoftXrcDomain } from '../srq/xrc-domain.js';

export class XrcTarget extends RcQueuePair {
  /** The queue that the present message names, or the last one did. */
  private named: SoftSharedReceiveQueue | undefined;

  constructor(hca: Engine, qpn: number, init: QueuePairInit) {
    // No context of its own: the consumer is found by the number of the SRQ.
    super(hca, qpn, { ...init, context: 0 }, noReceives(init), XRC_BASE);
    this.xrcDomain = init.xrcDomain as SoftXrcDomain;
  }

  override receive(rx: ReceivedPacket): void {
    if ((BITS_OF[rx.opcode]! & OPCODE_BIT.request) !== 0) super.receive(rx);
    else this.hca.counters.drops.wrongDirection += 1;
  }

  override ringSendDoorbell(): void {
    throw new SpiError('EINVAL', 'an XRC target sends nothing');
  }

  override ringReceiveDoorbell(): void {
    throw new SpiError('EINVAL', 'an XRC target has no receives of its own');
  }

  /** That of the queue which the present message names. */
  override get remoteDomain(): Domain {
    return this.receives.domain;
  }

  override get sharesReceives(): boolean {
    return true;
  }

  /**
   * The first packet of a message says which queue it is for; the others must say the same. What
   * does not exist, is no XRC queue or is of another domain is an XRC violation: an invalid request
   * (wire facts 5.3).
   */
  override selectReceives(rx: ReceivedPacket): boolean {
    const { responder } = this;
    const srqn = xrcethSrqn(rx.view, rx.offset + XRCETH_OFFSET_OF[rx.opcode]!);
    const starts = (BITS_OF[rx.opcode]! & OPCODE_BIT.start) !== 0;
    const found = starts ? this.hca.sharedReceives.find(srqn) : this.named;
    if (found === undefined || found.destroyed || found.srqn !== srqn || !this.reaches(found)) {
      responder.refuse(SYNDROME.nakInvalidRequest, WcStatus.REM_INV_REQ_ERR);
      return false;
    }
    if (found.failed) {
      responder.refuse(SYNDROME.nakRemoteOperational, WcStatus.LOC_QP_OP_ERR);
      return false;
    }
    this.named = found;
    this.receives = found;
    return true;
  }

  /** A queue that is gone has no completions, and its entries are its owner's again. */
  override completeReceive(
    status: number,
    opcode: number,
    flags: number,
    byteLength: number,
    immediate: number,
    sourceQpn: number,
  ): void {
    if (this.named?.destroyed === true) this.receiveEntry = -1;
    else super.completeReceive(status, opcode, flags, byteLength, immediate, sourceQpn);
  }

  private reaches(srq: SoftSharedReceiveQueue): boolean {
    return srq.completionQueue !== undefined && srq.xrcDomain === this.xrcDomain;
  }
}
