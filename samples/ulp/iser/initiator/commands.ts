/** Commands of a disk, ready to be sent, and the texts of their errors. */
import type { Command, Answer } from './reconnecting-session.js';
import { IscsiError } from '../session/initiator/index.js';
import {
  compareAndWrite,
  emitLun,
  inquiry,
  modeSense6,
  nameOf,
  read16,
  readCapacity10,
  readCapacity16,
  reportLuns,
  SCSI_STATUS,
  type Sense,
  SENSE_KEY,
  synchronizeCache10,
  testUnitReady,
  unmap,
  unmapDescriptor,
  unmapList,
  write16,
} from '../wire/index.js';

/** A command, and its words in an error. */
export interface DiskCommand extends Command {
  readonly what: () => string;
}

/** REPORT LUNS goes to LUN 0, whichever there are. */
export const LUN_0 = emitLun(0);

type Options = Pick<Command, 'signal' | 'timeoutMs'>;
type Extras = Partial<Pick<Command, 'dataIn' | 'dataOut'>> & { readonly isRepeatable?: boolean };

function command(
  what: () => string,
  lun: Uint8Array,
  cdb: { readonly bytes: Uint8Array },
  options: Options,
  extras: Extras = {},
): DiskCommand {
  return { what, lun, cdb: cdb.bytes, isRepeatable: true, ...options, ...extras };
}

export function read(
  lun: Uint8Array,
  lba: bigint,
  blocks: number,
  dataIn: Uint8Array,
  options: Options,
): DiskCommand {
  const cdb = read16.make({ lba, transferLength: blocks });
  const what = (): string => `READ of ${blocks} blocks at LBA ${lba}`;
  return command(what, lun, cdb, options, { dataIn });
}

export function write(
  lun: Uint8Array,
  lba: bigint,
  blocks: number,
  dataOut: Uint8Array,
  fua: boolean,
  options: Options,
): DiskCommand {
  const cdb = write16.make({ lba, transferLength: blocks, fua });
  const what = (): string => `WRITE of ${blocks} blocks at LBA ${lba}`;
  return command(what, lun, cdb, options, { dataOut });
}

export function flush(lun: Uint8Array, options: Options): DiskCommand {
  return command(() => 'SYNCHRONIZE CACHE', lun, synchronizeCache10.make({}), options);
}

/** @param blocks 1 to 2^32 - 1 */
export function discard(
  lun: Uint8Array,
  lba: bigint,
  blocks: number,
  options: Options,
): DiskCommand {
  const { lengthBytes: headerBytes } = unmapList;
  const { lengthBytes: descriptorsLength } = unmapDescriptor;
  const dataOut = new Uint8Array(headerBytes + descriptorsLength);
  unmapList.emit({ dataLength: dataOut.length - 2, descriptorsLength }, dataOut);
  unmapDescriptor.emit({ lba, blocks }, dataOut, headerBytes);
  const cdb = unmap.make({ parameterListLength: dataOut.length });
  const what = (): string => `UNMAP of ${blocks} blocks at LBA ${lba}`;
  return command(what, lun, cdb, options, { dataOut });
}

/** @param both what is expected, and behind it what is written */
export function compareWrite(
  lun: Uint8Array,
  lba: bigint,
  blocks: number,
  both: Uint8Array,
  options: Options,
): DiskCommand {
  const cdb = compareAndWrite.make({ lba, blocks });
  const what = (): string => `COMPARE AND WRITE of ${blocks} blocks at LBA ${lba}`;
  // The second time it would find what it has written itself.
  return command(what, lun, cdb, options, { dataOut: both, isRepeatable: false });
}

export function ready(lun: Uint8Array, options: Options): DiskCommand {
  return command(() => 'TEST UNIT READY', lun, testUnitReady.make({}), options);
}

/** @param page of vital product data; undefined for the standard data */
export function identify(
  lun: Uint8Array,
  page: number | undefined,
  dataIn: Uint8Array,
  options: Options,
): DiskCommand {
  const allocationLength = dataIn.length;
  const evpd = page !== undefined;
  const cdb = inquiry.make({ evpd, pageCode: page ?? 0, allocationLength });
  return command(() => 'INQUIRY', lun, cdb, options, { dataIn });
}

export function capacity(
  lun: Uint8Array,
  form: 10 | 16,
  dataIn: Uint8Array,
  options: Options,
): DiskCommand {
  const cdb =
    form === 10
      ? readCapacity10.make({})
      : readCapacity16.make({ allocationLength: dataIn.length });
  return command(() => `READ CAPACITY(${form})`, lun, cdb, options, { dataIn });
}

export function modes(lun: Uint8Array, dataIn: Uint8Array, options: Options): DiskCommand {
  const cdb = modeSense6.make({
    disableBlockDescriptors: true,
    pageCode: 0x3f,
    allocationLength: dataIn.length,
  });
  return command(() => 'MODE SENSE(6)', lun, cdb, options, { dataIn });
}

export function luns(dataIn: Uint8Array, options: Options): DiskCommand {
  const cdb = reportLuns.make({ allocationLength: dataIn.length });
  return command(() => 'REPORT LUNS', LUN_0, cdb, options, { dataIn });
}

/** @throws IscsiError SCSI_STATUS unless the status is GOOD */
export function checkStatus({ what }: DiskCommand, { status, sense }: Answer): void {
  if (status === SCSI_STATUS.GOOD || status === SCSI_STATUS.CONDITION_MET) return;
  const why = sense ? `, ${senseText(sense)}` : '';
  const message = `${what()}: ${nameOf(SCSI_STATUS, status)}${why}`;
  throw new IscsiError('SCSI_STATUS', message, { status, ...(sense && { sense }) });
}

/** `ILLEGAL_REQUEST 21/00 (LBA out of range)`. */
function senseText({ key, asc, ascq, information }: Sense): string {
  const pair = [asc, ascq].map((code) => code.toString(16).padStart(2, '0')).join('/');
  const known = ADDITIONAL.get((asc << 8) | ascq);
  const where = information === undefined ? '' : `, information ${information}`;
  return `${nameOf(SENSE_KEY, key)} ${pair}${known === undefined ? '' : ` (${known})`}${where}`;
}

/** Additional sense codes (SPC-4, annex D) that disks answer with. */
const ADDITIONAL: ReadonlyMap<number, string> = new Map([
  [0x0c00, 'write error'],
  [0x0c02, 'write error: auto reallocation failed'],
  [0x1100, 'unrecovered read error'],
  [0x1d00, 'miscompare during verify operation'],
  [0x2000, 'invalid command operation code'],
  [0x2100, 'logical block address out of range'],
  [0x2400, 'invalid field in CDB'],
  [0x2500, 'logical unit not supported'],
  [0x2600, 'invalid field in parameter list'],
  [0x2700, 'write protected'],
  [0x2707, 'space allocation failed write protect'],
  [0x2900, 'power on, reset, or bus device reset occurred'],
  [0x3a00, 'medium not present'],
  [0x4400, 'internal target failure'],
]);
