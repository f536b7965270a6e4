/** A target with a disk in memory, and initiators that send it commands. */
import assert from 'node:assert/strict';
import {
  type BlockBackend,
  BufferPool,
  MemoryBackend,
} from '../../../../../../samples/ulp/block/index.js';
import {
  LogicalUnit,
  type ScsiCommand,
  type ScsiResult,
  ScsiStatus,
  ScsiTarget,
  type TaskAttribute,
} from '../../../../../../samples/ulp/iser/scsi/index.js';
import { emitLun, readSense, type Sense } from '../../../../../../samples/ulp/iser/wire/index.js';

export const INITIATOR = 'iqn.2026-01.example:one,i,0x00023d000001';
export const OTHER = 'iqn.2026-01.example:two,i,0x00023d000002';
export const TARGET_NAME = 'iqn.2026-01.example:disk';

export interface CommandOptions {
  readonly from?: string;
  readonly lun?: number;
  readonly attribute?: TaskAttribute;
  /** Data-out; or with `outBytes`, what is expected beyond it fails to come. */
  readonly out?: Uint8Array;
  /** Room for data-in; default 64 KiB without data-out. */
  readonly inBytes?: number;
  readonly abort?: AbortController;
  /** Before each pull and push. */
  readonly meanwhile?: () => Promise<void>;
}

export interface Outcome {
  readonly status: ScsiStatus;
  readonly sense: Sense | undefined;
  readonly data: Uint8Array;
  readonly result: ScsiResult;
}

export interface SceneOptions {
  readonly backend?: BlockBackend;
  readonly sizeBytes?: number;
  readonly blockBytes?: number;
  readonly chunkBytes?: number;
  readonly chunks?: number;
}

/** Bytes of a CDB, written as hex. */
export function cdb(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
}

export class Scene {
  readonly backend: BlockBackend;
  readonly unit: LogicalUnit;
  readonly target: ScsiTarget;
  readonly pool: BufferPool;
  readonly faults: unknown[] = [];

  constructor(options: SceneOptions = {}) {
    const { sizeBytes = 1 << 20, blockBytes = 512, chunkBytes = 65536, chunks = 4 } = options;
    this.backend = options.backend ?? new MemoryBackend({ sizeBytes, blockBytes });
    this.unit = new LogicalUnit({
      backend: this.backend,
      identity: { vendor: 'DAPL', product: 'disk', revision: '1', serial: 'disk-0' },
      onFault: (error) => this.faults.push(error),
    });
    this.pool = new BufferPool({ memory: new Uint8Array(chunks * chunkBytes), chunkBytes });
    const units = new Map([[0, this.unit]]);
    this.target = new ScsiTarget({ name: TARGET_NAME, units, pool: this.pool });
    this.target.nexusOpened(INITIATOR);
    this.target.nexusOpened(OTHER);
  }

  /** As a transport does it: 16 bytes of CDB, data in order, nothing beyond what is expected. */
  async run(bytes: Uint8Array | string, options: CommandOptions = {}): Promise<Outcome> {
    const { from = INITIATOR, lun = 0, attribute = 'SIMPLE', out } = options;
    const { inBytes = out === undefined ? 65536 : 0, abort = new AbortController() } = options;
    const given = typeof bytes === 'string' ? cdb(bytes) : bytes;
    const whole = new Uint8Array(Math.max(16, given.length));
    whole.set(given);
    const data: Uint8Array[] = [];
    let pushed = 0;
    let pulled = 0;
    const command: ScsiCommand = {
      initiatorPort: from,
      lun: emitLun(lun),
      cdb: whole,
      attribute,
      dataOutBytes: out?.length ?? 0,
      dataInBytes: inBytes,
      abort,
      pull: async (offset, into) => {
        await options.meanwhile?.();
        assert.ok(offset >= pulled && offset + into.length <= (out?.length ?? 0), 'pulls too much');
        pulled = offset + into.length;
        into.set(out!.subarray(offset, offset + into.length));
      },
      push: async (offset, part) => {
        await options.meanwhile?.();
        assert.equal(offset, pushed);
        pushed += part.length;
        assert.ok(pushed <= inBytes, 'pushes too much');
        data.push(Uint8Array.from(part));
      },
    };
    const result = await this.target.execute(command);
    if (this.unit.tasks.size === 0) {
      assert.equal(this.pool.freeCount, this.pool.chunkCount, 'every chunk was given back');
    }
    const sense = result.sense.length > 0 ? readSense(result.sense) : undefined;
    return { status: result.status, sense, data: Buffer.concat(data), result };
  }

  /** A command that has to succeed. @returns its data */
  async good(bytes: Uint8Array | string, options: CommandOptions = {}): Promise<Uint8Array> {
    const { status, sense, data } = await this.run(bytes, options);
    assert.equal(status, ScsiStatus.GOOD, JSON.stringify(sense));
    return data;
  }

  /** A command that has to end with CHECK CONDITION. @returns "key/asc/ascq" in hex */
  async refused(bytes: Uint8Array | string, options: CommandOptions = {}): Promise<string> {
    const { status, sense } = await this.run(bytes, options);
    assert.equal(status, ScsiStatus.CHECK_CONDITION);
    return senseText(sense!);
  }

  async conflicts(bytes: Uint8Array | string, options: CommandOptions = {}): Promise<void> {
    const { status } = await this.run(bytes, options);
    assert.equal(status, ScsiStatus.RESERVATION_CONFLICT);
  }
}

export function senseText({ key, asc, ascq }: Sense): string {
  return [key, asc, ascq].map((byte) => byte.toString(16).padStart(2, '0')).join('/');
}

/** READ(16) and WRITE(16), and the like: operation code, flags, LBA, blocks. */
export function cdb16(opcode: number, lba: bigint | number, blocks: number, flags = 0): Uint8Array {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  bytes[0] = opcode;
  bytes[1] = flags;
  view.setBigUint64(2, BigInt(lba));
  view.setUint32(10, blocks);
  return bytes;
}
