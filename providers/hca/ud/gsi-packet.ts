/** Builds the packet of a MAD from QP1 to QP1, for use when no queue can send it any more. */
import { GSI_QKEY, GSI_QPN } from '../../../core/spi/index.js';
import { BTH_LENGTH, writeBth } from '../../../core/spi/wire/bth.js';
import { DETH_LENGTH, writeDeth } from '../wire/extended-headers.js';
import { UD } from '../../../core/spi/wire/opcode.js';

/** From the BTH on; a MAD needs no pad. Its PSN is 0: datagrams have no order. */
export function gsiPacket(mad: Uint8Array): Uint8Array {
  const packet = new Uint8Array(BTH_LENGTH + DETH_LENGTH + mad.length);
  const view = new DataView(packet.buffer);
  writeBth(view, 0, UD.sendOnly, 0, GSI_QPN, 0);
  writeDeth(view, BTH_LENGTH, GSI_QKEY, GSI_QPN);
  packet.set(mad, BTH_LENGTH + DETH_LENGTH);
  return packet;
}
