/** MODE SENSE and MODE SELECT (SPC-4 6.10 to 6.14). */
import { ScsiError } from '../common/scsi-error.js';
import type { LogicalUnit } from '../unit/logical-unit.js';
import type { PageControl } from '../unit/mode-pages.js';
import type { Task } from '../unit/task.js';
import { type CommandRow, usage } from './row.js';

type Size = 6 | 10;
const HEADER_BYTES = { 6: 4, 10: 8 } as const;

const Sense = { DBD: 0x08, LLBAA: 0x10 } as const;
const PAGE_CONTROLS: readonly (PageControl | 'saved')[] = [
  'current',
  'changeable',
  'default',
  'saved',
];
const ALL_PAGES = 0x3f;
const ALL_SUBPAGES = 0xff;

/** Device-specific parameter (SBC-3 6.5.1). */
const Device = { WRITE_PROTECTED: 0x80, DPO_FUA: 0x10 } as const;

async function modeSense(task: Task, size: Size): Promise<void> {
  const { cdb, unit } = task;
  const control = PAGE_CONTROLS[cdb.getUint8(2) >> 6]!;
  const code = cdb.getUint8(2) & 0x3f;
  const subpage = cdb.getUint8(3);
  const allocationLength = size === 6 ? cdb.getUint8(4) : cdb.getUint16(7);
  if (control === 'saved') throw ScsiError.check('SAVING_PARAMETERS_NOT_SUPPORTED');
  if (subpage !== 0 && !(code === ALL_PAGES && subpage === ALL_SUBPAGES))
    throw ScsiError.cdbField(3);
  const codes = code === ALL_PAGES ? unit.modePages.codes : [code];
  const pages = codes.map((each) => unit.modePages.page(each, control));
  if (pages.includes(undefined)) throw ScsiError.cdbField(2);
  const isLong = size === 10 && (cdb.getUint8(1) & Sense.LLBAA) !== 0;
  const hasDescriptor = (cdb.getUint8(1) & Sense.DBD) === 0;
  const descriptor = hasDescriptor ? blockDescriptor(unit, isLong) : new Uint8Array();
  const data = Buffer.concat([
    new Uint8Array(HEADER_BYTES[size]),
    descriptor,
    ...(pages as Uint8Array[]),
  ]);
  const isProtected = unit.backend.isReadOnly || unit.modePages.isWriteProtected;
  const device = Device.DPO_FUA | (isProtected ? Device.WRITE_PROTECTED : 0);
  if (size === 6) {
    data[0] = data.length - 1;
    data[2] = device;
    data[3] = descriptor.length;
  } else {
    data.writeUInt16BE(data.length - 2, 0);
    data[3] = device;
    data[4] = isLong ? 1 : 0;
    data.writeUInt16BE(descriptor.length, 6);
  }
  await task.respond(data, allocationLength);
}

/** The number of blocks and their size (SBC-3 6.5.2), short or long. */
function blockDescriptor({ backend }: LogicalUnit, isLong: boolean): Uint8Array {
  const view = new DataView(new ArrayBuffer(isLong ? 16 : 8));
  if (isLong) {
    view.setBigUint64(0, backend.blockCount);
    view.setUint32(12, backend.blockBytes);
  } else {
    const most = 0xffff_ffffn;
    view.setUint32(0, Number(backend.blockCount < most ? backend.blockCount : most));
    view.setUint32(4, backend.blockBytes);
  }
  return new Uint8Array(view.buffer);
}

const Select = { PAGE_FORMAT: 0x10, SAVE_PAGES: 0x01 } as const;
const SUBPAGE_FORMAT = 0x40;

async function modeSelect(task: Task, size: Size): Promise<void> {
  const { cdb, unit, nexus } = task;
  const flags = cdb.getUint8(1);
  const listLength = size === 6 ? cdb.getUint8(4) : cdb.getUint16(7);
  if ((flags & Select.SAVE_PAGES) !== 0) throw ScsiError.cdbField(1);
  if (listLength === 0) return;
  if (listLength < HEADER_BYTES[size]) throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  const list = await task.gather(listLength);
  const view = new DataView(list.buffer);
  const descriptorLength = size === 6 ? list[3]! : view.getUint16(6);
  const isLong = size === 10 && (list[4]! & 1) !== 0;
  const from = HEADER_BYTES[size] + descriptorLength;
  if (from > listLength) throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  checkDescriptor(unit, list.subarray(HEADER_BYTES[size], from), isLong, HEADER_BYTES[size]);
  if ((flags & Select.PAGE_FORMAT) === 0 && from < listLength) throw ScsiError.cdbField(1);
  const pages = pagesOf(unit, list, from);
  const changes = pages.map(({ code, page }) => unit.modePages.set(code, page));
  if (changes.includes(true)) unit.attentions.raiseForAll('MODE_PARAMETERS_CHANGED', nexus);
}

/** Block size and count stay as they are. */
function checkDescriptor(unit: LogicalUnit, wanted: Uint8Array, isLong: boolean, at: number): void {
  if (wanted.length === 0) return;
  const own = blockDescriptor(unit, isLong);
  if (wanted.length !== own.length) throw ScsiError.listField(at - 1);
  const countBytes = isLong ? 8 : 4;
  const isUnstated = wanted.subarray(0, countBytes).every((byte) => byte === 0);
  const differs = own.findIndex((byte, i) => byte !== wanted[i] && !(isUnstated && i < countBytes));
  if (differs >= 0) throw ScsiError.listField(at + differs);
}

/** @throws ScsiError for a page that is not there or would change what cannot be changed */
function pagesOf(
  unit: LogicalUnit,
  list: Uint8Array,
  from: number,
): { readonly code: number; readonly page: Uint8Array }[] {
  const pages = [];
  for (let at = from; at < list.length;) {
    const code = list[at]! & 0x3f;
    const own = unit.modePages.page(code, 'current');
    if (own === undefined || (list[at]! & SUBPAGE_FORMAT) !== 0) throw ScsiError.listField(at);
    if (at + own.length > list.length) throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
    const page = list.subarray(at, at + own.length);
    const refused = unit.modePages.refused(code, page);
    if (refused !== undefined) throw ScsiError.listField(at + refused);
    pages.push({ code, page });
    at += own.length;
  }
  return pages;
}

export const MODE_COMMANDS: readonly CommandRow[] = [
  {
    name: 'MODE SENSE(6)',
    opcode: 0x1a,
    usage: usage('1a 08 ff ff ff 00'),
    access: 'inspect',
    runsWhileStopped: true,
    run: (task) => modeSense(task, 6),
  },
  {
    name: 'MODE SENSE(10)',
    opcode: 0x5a,
    usage: usage('5a 18 ff ff 00 00 00 ff ff 00'),
    access: 'inspect',
    runsWhileStopped: true,
    run: (task) => modeSense(task, 10),
  },
  {
    name: 'MODE SELECT(6)',
    opcode: 0x15,
    usage: usage('15 11 00 00 ff 00'),
    access: 'write',
    runsWhileStopped: true,
    run: (task) => modeSelect(task, 6),
  },
  {
    name: 'MODE SELECT(10)',
    opcode: 0x55,
    usage: usage('55 11 00 00 00 00 00 ff ff 00'),
    access: 'write',
    runsWhileStopped: true,
    run: (task) => modeSelect(task, 10),
  },
];
