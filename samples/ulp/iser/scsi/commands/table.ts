/** Every command that this device server has. */
import { ScsiError } from '../common/scsi-error.js';
import { ATOMIC_COMMANDS } from './atomic.js';
import { CAPACITY_COMMANDS, REPORT_LUNS } from './capacity.js';
import { INQUIRY } from './inquiry.js';
import { MEDIUM_COMMANDS } from './medium.js';
import { MODE_COMMANDS } from './mode.js';
import { PROVISIONING_COMMANDS } from './provisioning.js';
import { RESERVATION_COMMANDS } from './reserve.js';
import type { CommandRow } from './row.js';
import { REQUEST_SENSE, STATE_COMMANDS } from './state.js';
import { SUPPORT_COMMANDS } from './supported.js';

export const COMMANDS: readonly CommandRow[] = [
  INQUIRY,
  REPORT_LUNS,
  REQUEST_SENSE,
  ...STATE_COMMANDS,
  ...CAPACITY_COMMANDS,
  ...MODE_COMMANDS,
  ...MEDIUM_COMMANDS,
  ...ATOMIC_COMMANDS,
  ...PROVISIONING_COMMANDS,
  ...RESERVATION_COMMANDS,
  ...SUPPORT_COMMANDS,
];

/** Without service actions, a row; with them, a row for each. */
const BY_OPCODE = new Map<number, CommandRow | ReadonlyMap<number, CommandRow>>();
for (const row of COMMANDS) {
  if (row.serviceAction === undefined) {
    BY_OPCODE.set(row.opcode, row);
    continue;
  }
  const rows = new Map(BY_OPCODE.get(row.opcode) as ReadonlyMap<number, CommandRow> | undefined);
  BY_OPCODE.set(row.opcode, rows.set(row.serviceAction, row));
}

/**
 * The row of a CDB whose bits are all known.
 * @throws ScsiError INVALID COMMAND OPERATION CODE, or INVALID FIELD IN CDB with its place
 */
export function commandOf(cdb: Uint8Array): CommandRow {
  const found = BY_OPCODE.get(cdb[0]!);
  if (found === undefined) throw ScsiError.check('INVALID_OPERATION_CODE');
  const row = found instanceof Map ? serviceActionOf(found, cdb) : (found as CommandRow);
  checkUsage(row, cdb);
  return row;
}

const SERVICE_ACTION = 0x1f;

function serviceActionOf(rows: ReadonlyMap<number, CommandRow>, cdb: Uint8Array): CommandRow {
  const row = rows.get(cdb[1]! & SERVICE_ACTION);
  if (row === undefined) throw ScsiError.cdbField(1);
  return row;
}

function checkUsage({ usage, serviceAction }: CommandRow, cdb: Uint8Array): void {
  if (cdb.length < usage.length) throw ScsiError.cdbField(cdb.length);
  for (let at = 1; at < usage.length; at++) {
    const known = at === 1 && serviceAction !== undefined ? SERVICE_ACTION : usage[at]!;
    if ((cdb[at]! & ~known) !== 0) throw ScsiError.cdbField(at);
  }
}
