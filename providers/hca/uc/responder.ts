/**
 * UC responder (IBTA 9.8.2.2): a message arrives whole or not at all. Whatever is wrong with a
 * packet drops its message without a word; the receive that the message had begun to fill is the
 * next one's. Only a receive that is itself bad is an error.
 */
import { WcOpcode } from '../../../core/spi/index.js';
import type { DropReason } from '../common/counters.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import type { ConnectedQueuePair } from '../connected/connection.js';
import { type Fault, MessageReceiver } from '../connected/message-receiver.js';
import { OPCODE_BIT, OPERATION } from '../../../core/spi/wire/opcode.js';
import { BITS_OF, OPERATION_OF } from '../../../core/spi/wire/packet-layout.js';
import { psnDiff, psnNext } from '../wire/psn.js';

/**
 * A packet so far behind is a duplicate, or was overtaken: its message is over. Further behind, it
 * is ahead, after a long loss: PSNs go round.
 */
const STALE_PSNS = 1 << 16;

export class UcResponder extends MessageReceiver<ConnectedQueuePair> {
  receive(rx: ReceivedPacket): void {
    this.noteArrival(rx.psn);
    const ahead = psnDiff(rx.psn, this.ePsn);
    if (ahead < 0 && ahead >= -STALE_PSNS) {
      this.qp.hca.counters.drops.duplicate += 1;
      return;
    }
    this.ePsn = psnNext(rx.psn);
    const operation = OPERATION_OF[rx.opcode]!;
    const bits = BITS_OF[rx.opcode]!;
    // A message whose end never came makes room for the next one.
    if ((bits & OPCODE_BIT.start) !== 0 || ahead !== 0) this.abandon();
    if (this.admits(rx, operation, bits)) this.execute(rx, operation, bits);
  }

  protected override onExecuted(): void {
    // Nothing is acknowledged.
  }

  override fail({ drop, status }: Fault): boolean {
    if (drop !== undefined) return this.drop(drop);
    this.qp.completeReceive(status, WcOpcode.RECV, 0, 0, 0, 0);
    this.qp.toError();
    return false;
  }

  protected override notReady(): boolean {
    return this.drop('noReceive');
  }

  /** Drops a packet, and with it the rest of its message. */
  private drop(reason: DropReason): boolean {
    this.qp.hca.counters.drops[reason] += 1;
    this.abandon();
    return false;
  }

  /** Forgets the message under way. */
  private abandon(): void {
    this.open = OPERATION.unknown;
    this.qp.putBackReceive();
  }
}
