/** INQUIRY: standard data and vital product data (SPC-4 6.6, 7.8; SBC-3 6.6). */
import { ScsiError } from '../common/scsi-error.js';
import { ascii, bits, blockLimitsPage, flag, format, uint } from '../../wire/index.js';
import { naaOf } from '../unit/identity.js';
import type { LogicalUnit } from '../unit/logical-unit.js';
import type { Task } from '../unit/task.js';
import { type CommandRow, type TargetView, usage } from './row.js';

/** Peripheral qualifier and device type: a disk; nothing, where nothing can be. */
export const Peripheral = { DISK: 0x00, ABSENT: 0x7f } as const;

/** Version descriptors (SPC-4 table 143): SAM-5, iSCSI, SPC-4, SBC-3, each without a version. */
const STANDARDS = [0x00a0, 0x0960, 0x0460, 0x04c0] as const;
const STANDARD_BYTES = 96;

const standardData = format('standard INQUIRY data', STANDARD_BYTES, {
  peripheral: uint(0, 1),
  version: uint(2, 1),
  /** HISUP: LUNs are as in SAM-5; and format 2. */
  responseFormat: uint(3, 1),
  additionalLength: uint(4, 1),
  commandQueuing: flag(7, 0x02),
  vendor: ascii(8, 8),
  product: ascii(16, 16),
  revision: ascii(32, 4),
});
const SPC_4 = 0x06;
const FORMAT_2_HISUP = 0x12;

/** Also for units that are not there, whose identity is that of the target. */
export function standardInquiry(peripheral: number, unit?: LogicalUnit): Uint8Array {
  const { vendor = '', product = '', revision = '' } = unit?.identity ?? {};
  const { bytes } = standardData.make({
    peripheral,
    version: SPC_4,
    responseFormat: FORMAT_2_HISUP,
    additionalLength: STANDARD_BYTES - 5,
    commandQueuing: true,
    vendor,
    product,
    revision,
  });
  const view = new DataView(bytes.buffer);
  STANDARDS.forEach((standard, i) => view.setUint16(58 + 2 * i, standard));
  return bytes;
}

type Vpd = (unit: LogicalUnit, target: TargetView) => Uint8Array;

const text = (characters: string): Uint8Array => new TextEncoder().encode(characters);

/** With the four bytes in front that all pages have. */
function page(code: number, content: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + content.length);
  bytes[1] = code;
  new DataView(bytes.buffer).setUint16(2, content.length);
  bytes.set(content, 4);
  return bytes;
}

/** Association of a designator (SPC-4 table 530). */
const Association = { LOGICAL_UNIT: 0, TARGET_PORT: 1, TARGET_DEVICE: 2 } as const;
const CodeSet = { BINARY: 1, ASCII: 2, UTF8: 3 } as const;
const Designator = { T10_VENDOR: 1, NAA: 3, RELATIVE_PORT: 4, SCSI_NAME: 8 } as const;
const ISCSI = 5;

function designator(
  association: number,
  codeSet: number,
  type: number,
  value: Uint8Array,
): Uint8Array {
  const bytes = new Uint8Array(4 + value.length);
  const isPort = association !== Association.LOGICAL_UNIT;
  bytes[0] = (isPort ? ISCSI << 4 : 0) | codeSet;
  bytes[1] = (isPort ? 0x80 : 0) | (association << 4) | type;
  bytes[3] = value.length;
  bytes.set(value, 4);
  return bytes;
}

/** The target's only port. */
const RELATIVE_PORT = Uint8Array.of(0, 0, 0, 1);

function deviceIdentification(unit: LogicalUnit, { name }: TargetView): Uint8Array {
  const naa = new DataView(new ArrayBuffer(8));
  naa.setBigUint64(0, naaOf(unit.identity));
  const t10 = unit.identity.vendor.padEnd(8) + unit.identity.serial;
  const { LOGICAL_UNIT, TARGET_PORT, TARGET_DEVICE } = Association;
  return Buffer.concat([
    designator(LOGICAL_UNIT, CodeSet.BINARY, Designator.NAA, new Uint8Array(naa.buffer)),
    designator(LOGICAL_UNIT, CodeSet.ASCII, Designator.T10_VENDOR, text(t10)),
    designator(TARGET_PORT, CodeSet.BINARY, Designator.RELATIVE_PORT, RELATIVE_PORT),
    designator(TARGET_PORT, CodeSet.UTF8, Designator.SCSI_NAME, scsiName(`${name},t,0x0001`)),
    designator(TARGET_DEVICE, CodeSet.UTF8, Designator.SCSI_NAME, scsiName(name)),
  ]);
}

/** Ended with a zero and padded to a multiple of 4 (SPC-4 7.8.6.11). */
function scsiName(name: string): Uint8Array {
  const characters = text(`${name}\0`);
  const bytes = new Uint8Array(Math.ceil(characters.length / 4) * 4);
  bytes.set(characters);
  return bytes;
}

function blockLimits({ limits }: LogicalUnit): Uint8Array {
  const { maxWriteSameBlocks, physicalBlocks, ...others } = limits;
  return blockLimitsPage
    .make({
      ...others,
      unmapGranularity: physicalBlocks,
      maxWriteSameBlocks: BigInt(maxWriteSameBlocks),
    })
    .bytes.subarray(4);
}

const characteristics = format('block device characteristics', 60, {
  /** 1: it does not rotate. */
  rotationRate: uint(0, 2),
});

const provisioning = format('logical block provisioning', 4, {
  thresholdExponent: uint(0, 1),
  /** UNMAP, WRITE SAME(16) and WRITE SAME(10) unmap. */
  lbpu: flag(1, 0x80),
  lbpws: flag(1, 0x40),
  lbpws10: flag(1, 0x20),
  /** Unmapped blocks read as zeroes. */
  lbprz: bits(1, 0x1c),
  /** 2: thin. */
  type: bits(2, 0x07),
});

const PAGES: ReadonlyMap<number, Vpd> = new Map<number, Vpd>([
  [0x00, () => Uint8Array.from(PAGES.keys())],
  [0x80, ({ identity }) => text(identity.serial)],
  [0x83, deviceIdentification],
  [0xb0, blockLimits],
  [0xb1, () => characteristics.make({ rotationRate: 1 }).bytes],
  [
    0xb2,
    () => provisioning.make({ lbpu: true, lbpws: true, lbpws10: true, lbprz: 1, type: 2 }).bytes,
  ],
]);

const EVPD = 0x01;

async function inquiry(task: Task, target: TargetView): Promise<void> {
  const { cdb, unit } = task;
  const code = cdb.getUint8(2);
  const allocationLength = cdb.getUint16(3);
  if ((cdb.getUint8(1) & EVPD) === 0) {
    if (code !== 0) throw ScsiError.cdbField(2);
    return task.respond(standardInquiry(Peripheral.DISK, unit), allocationLength);
  }
  const content = PAGES.get(code)?.(unit, target);
  if (content === undefined) throw ScsiError.cdbField(2);
  return task.respond(page(code, content), allocationLength);
}

export const INQUIRY: CommandRow = {
  name: 'INQUIRY',
  opcode: 0x12,
  usage: usage('12 01 ff ff ff 00'),
  access: 'exempt',
  runsBeforeAttention: true,
  runsWhileStopped: true,
  run: inquiry,
};
