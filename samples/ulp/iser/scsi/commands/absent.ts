/** Commands to a LUN without a logical unit, and their answers (SPC-4 6.6.1, 6.33, 6.39). */
import { emitFixedSense } from '../../wire/index.js';
import { CONDITION } from '../common/conditions.js';
import { ScsiError } from '../common/scsi-error.js';
import type { Exchange } from '../unit/exchange.js';
import { REPORT_LUNS, reportLuns } from './capacity.js';
import { INQUIRY, Peripheral, standardInquiry } from './inquiry.js';
import type { TargetView } from './row.js';
import { REQUEST_SENSE } from './state.js';
import { commandOf } from './table.js';

const EVPD = 0x01;

/** @throws ScsiError LOGICAL UNIT NOT SUPPORTED for any command but three */
export async function performAbsent(exchange: Exchange, target: TargetView): Promise<void> {
  const { cdb, command } = exchange;
  switch (cdb.getUint8(0)) {
    case INQUIRY.opcode:
      commandOf(command.cdb);
      if ((cdb.getUint8(1) & EVPD) !== 0 || cdb.getUint8(2) !== 0) throw ScsiError.cdbField(2);
      return exchange.respond(standardInquiry(Peripheral.ABSENT), cdb.getUint16(3));
    case REPORT_LUNS.opcode:
      commandOf(command.cdb);
      return reportLuns(exchange, target);
    case REQUEST_SENSE.opcode: {
      commandOf(command.cdb);
      const sense = emitFixedSense(CONDITION.LOGICAL_UNIT_NOT_SUPPORTED);
      return exchange.respond(sense, cdb.getUint8(4));
    }
    default:
      throw ScsiError.check('LOGICAL_UNIT_NOT_SUPPORTED');
  }
}
