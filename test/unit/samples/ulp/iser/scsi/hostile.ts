/**
 * Commands of an initiator that means harm or has a mistake, by seed: random CDBs, and CDBs of the
 * table with random fields, lengths that do not fit, parameter lists of noise.
 */
import assert from 'node:assert/strict';
import {
  type BlockBackend,
  type BlockBytes,
  type Extent,
  MemoryBackend,
  type WriteOptions,
} from '../../../../../../samples/ulp/block/index.js';
import { COMMANDS } from '../../../../../../samples/ulp/iser/scsi/commands/table.js';
import { ScsiStatus, type TaskAttribute } from '../../../../../../samples/ulp/iser/scsi/index.js';
import { SENSE_KEY } from '../../../../../../samples/ulp/iser/wire/index.js';
import { randomOf } from '../../block/random.js';
import { type CommandOptions, INITIATOR, OTHER, Scene } from './scene.js';

const BLOCKS = 256;
const MAX_DATA_BYTES = 1 << 16;
/** Reservations, stopped units and protection must not hide the rest: a new disk after so many. */
const COMMANDS_PER_DISK = 100;

/** Notes which blocks are changed. */
class WatchedBackend implements BlockBackend {
  readonly changed: (readonly [lba: bigint, end: bigint])[] = [];
  readonly isReadOnly = false;
  readonly serial = 'watched';
  readonly blockBytes: BlockBytes;
  readonly blockCount: bigint;
  private readonly below: MemoryBackend;

  constructor(blockBytes: number) {
    this.below = new MemoryBackend({ sizeBytes: BLOCKS * blockBytes, blockBytes });
    this.blockBytes = this.below.blockBytes;
    this.blockCount = this.below.blockCount;
  }

  read(lba: bigint, into: Uint8Array): Promise<void> {
    return this.below.read(lba, into);
  }

  write(lba: bigint, from: Uint8Array, _options?: WriteOptions): Promise<void> {
    this.note(lba, BigInt(from.length / this.blockBytes));
    return this.below.write(lba, from);
  }

  flush(): Promise<void> {
    return this.below.flush();
  }

  discard(lba: bigint, blocks: bigint): Promise<void> {
    this.note(lba, blocks);
    return this.below.discard(lba, blocks);
  }

  writeZeroes(lba: bigint, blocks: bigint): Promise<void> {
    this.note(lba, blocks);
    return this.below.writeZeroes(lba, blocks);
  }

  extentAt(lba: bigint): Extent {
    return this.below.extentAt(lba);
  }

  close(): Promise<void> {
    return this.below.close();
  }

  private note(lba: bigint, blocks: bigint): void {
    this.changed.push([lba, lba + blocks]);
  }
}

type Ranges = readonly (readonly [first: bigint, end: bigint])[];

/** What a command may change, read from its bytes without the code under test (SBC-3). */
function mayChange(cdb: Uint8Array, out: Uint8Array): Ranges {
  const view = new DataView(Uint8Array.from(cdb).buffer);
  const range = (lba: number | bigint, count: number): Ranges => [
    [BigInt(lba), BigInt(lba) + BigInt(count)],
  ];
  const toEnd = (lba: number | bigint, count: number): Ranges =>
    range(lba, count === 0 ? BLOCKS : count);
  switch (cdb[0]) {
    case 0x0a:
      return range(view.getUint32(0) & 0x1fffff, cdb[4] === 0 ? 256 : cdb[4]!);
    case 0x2a:
    case 0x2e:
      return range(view.getUint32(2), view.getUint16(7));
    case 0xaa:
    case 0xae:
      return range(view.getUint32(2), view.getUint32(6));
    case 0x8a:
    case 0x8b:
    case 0x8e:
      return range(view.getBigUint64(2), view.getUint32(10));
    case 0x89:
      return range(view.getBigUint64(2), cdb[13]!);
    case 0x41:
      return toEnd(view.getUint32(2), view.getUint16(7));
    case 0x93:
      return toEnd(view.getBigUint64(2), view.getUint32(10));
    case 0x42: {
      const list = new DataView(Uint8Array.from(out).buffer);
      const count = Math.max(0, Math.floor((list.byteLength - 8) / 16));
      return Array.from({ length: count }, (_, i) => {
        const lba = list.getBigUint64(8 + 16 * i);
        return [lba, lba + BigInt(list.getUint32(16 + 16 * i))] as const;
      });
    }
    default:
      return [];
  }
}

/** What was met, to see that the noise reaches the commands. */
export interface HostileRun {
  readonly commands: number;
  readonly good: ReadonlySet<number>;
  readonly keys: ReadonlySet<number>;
  readonly changes: number;
}

/** @throws AssertionError for an answer that SCSI does not know, or a block that must not change */
export async function sendHostileCommands(seed: number, commands: number): Promise<HostileRun> {
  const random = randomOf(seed);
  const good = new Set<number>();
  const keys = new Set<number>();
  let changes = 0;
  for (let sent = 0; sent < commands;) {
    const backend = new WatchedBackend(random() < 0.5 ? 512 : 4096);
    const scene = new Scene({ backend, chunkBytes: 8192, chunks: 2 });
    for (let i = 0; i < COMMANDS_PER_DISK && sent < commands; i++, sent++) {
      const bytes = hostileCdb(random);
      const options = hostileOptions(random, bytes);
      backend.changed.length = 0;
      const { status, sense, result } = await scene.run(bytes, options);
      const shown = `seed ${seed}, command ${sent}: ${Buffer.from(bytes).toString('hex')}`;
      assert.deepEqual(scene.faults, [], shown);
      assert.ok(Object.values(ScsiStatus).includes(status), shown);
      assert.equal(sense !== undefined, status === ScsiStatus.CHECK_CONDITION, shown);
      assert.equal(result.isAborted, false, shown);
      const { kind, bytes: residual } = result.residual;
      assert.ok(Number.isSafeInteger(residual) && residual >= 0, shown);
      assert.equal(residual > 0, kind !== 'none', shown);
      const allowed = mayChange(bytes, options.out ?? new Uint8Array());
      for (const [first, end] of backend.changed) {
        assert.ok(end <= BigInt(BLOCKS), shown);
        const isAllowed = allowed.some(([from, to]) => from <= first && end <= to);
        assert.ok(isAllowed, `${shown} changes blocks ${first} to ${end}`);
      }
      changes += backend.changed.length;
      if (status === ScsiStatus.GOOD) good.add(bytes[0]!);
      if (sense !== undefined) keys.add(sense.key);
      assert.notEqual(sense?.key, SENSE_KEY.HARDWARE_ERROR, shown);
    }
    // It still works for one that behaves.
    await scene.target.manage('LOGICAL UNIT RESET', INITIATOR, new Uint8Array(8));
    scene.unit.reservations.registerAnyway(INITIATOR, 1n);
    scene.unit.reservations.clear(INITIATOR, 1n);
    await scene.refused('00 00 00 00 00 00');
    await scene.good('28 00 00 00 00 00 00 00 01 00');
  }
  return { commands, good, keys, changes };
}

export function hostileCdb(random: () => number): Uint8Array {
  const below = (limit: number): number => Math.floor(random() * limit);
  if (below(8) === 0) return Uint8Array.from({ length: 16 }, () => below(256));
  const { opcode, serviceAction, usage } = COMMANDS[below(COMMANDS.length)]!;
  const bytes = new Uint8Array(16);
  const noise = below(4);
  for (let at = 1; at < usage.length; at++) {
    const dense = noise > 1 ? usage[at]! : 0;
    // Few high bits: most addresses would else be beyond the disk.
    const isLow = usage[at] !== 0xff || usage[at + 1] !== 0xff;
    bytes[at] = (isLow || below(12) === 0 ? below(256) : 0) & (noise === 0 ? below(256) : dense);
    if (noise === 1 && isLow) bytes[at] = below(16) & usage[at]!;
  }
  bytes[0] = opcode;
  if (serviceAction !== undefined)
    bytes[1] = (bytes[1]! & 0xe0 & (noise === 0 ? 0xff : 0)) | serviceAction;
  return bytes;
}

const ATTRIBUTES: readonly TaskAttribute[] = ['SIMPLE', 'ORDERED', 'HEAD OF QUEUE', 'ACA'];

function hostileOptions(random: () => number, cdb: Uint8Array): CommandOptions {
  const below = (limit: number): number => Math.floor(random() * limit);
  const options = {
    from: below(2) === 0 ? INITIATOR : OTHER,
    lun: below(16) === 0 ? below(16384) : 0,
    attribute: ATTRIBUTES[below(32)] ?? 'SIMPLE',
  };
  const writes = [0x0a, 0x2a, 0xaa, 0x8a, 0x2e, 0xae, 0x8e, 0x8b, 0x89, 0x41, 0x93, 0x42];
  const lists = [0x15, 0x55, 0x5f, 0x2f, 0xaf, 0x8f];
  if (!writes.includes(cdb[0]!) && !lists.includes(cdb[0]!) && below(4) > 0) {
    return { ...options, inBytes: below(4) === 0 ? below(300) : MAX_DATA_BYTES };
  }
  const sizes = [0, 512, 4096, 8192, below(300), below(MAX_DATA_BYTES)];
  const out = new Uint8Array(sizes[below(sizes.length)]!);
  const limit = below(3) === 0 ? 256 : 4;
  for (let at = 0; at < Math.min(out.length, 512); at++)
    out[at] = below(8) === 0 ? below(limit) : 0;
  return { ...options, out };
}
