/** One SCSI command of a session, from the PDU that brought it to its end. */
import type { ScsiCommand } from '../../wire/index.js';
import { CommandAbort, type TaskSignal } from './command-abort.js';
import type { AdvertisedBuffers, Datamover, TransferTask } from './datamover.js';
import type { DeviceCommand } from './device-server.js';

const NO_DATA = new Uint8Array(0);
const ATTRIBUTES = ['SIMPLE', 'SIMPLE', 'ORDERED', 'HEAD OF QUEUE', 'ACA'] as const;
/** Values of `attribute` that a command may have. */
export const ATTRIBUTE_COUNT = ATTRIBUTES.length;

export interface TaskParts {
  readonly initiatorPort: string;
  readonly header: ScsiCommand;
  /** Behind the 16 bytes of the header. */
  readonly extendedCdb: Uint8Array | undefined;
  /** What came along with the command. */
  readonly immediateData: Uint8Array;
  readonly advertised: AdvertisedBuffers | undefined;
}

/** A task holds no part of the PDU: the buffer that it came in is used again. */
export class Task implements TransferTask, DeviceCommand {
  readonly initiatorPort: string;
  readonly initiatorTaskTag: number;
  readonly lun: Uint8Array;
  readonly cdb: Uint8Array;
  readonly attribute: DeviceCommand['attribute'];
  readonly dataOutBytes: number;
  readonly dataInBytes: number;
  readonly advertised: AdvertisedBuffers | undefined;
  /** It has a place in the command window. */
  readonly takesCmdSn: boolean;
  readonly abort = new CommandAbort();
  private readonly immediateData: Uint8Array;
  private hasEnded = false;
  private readonly waiters: (() => void)[] = [];

  constructor(
    { initiatorPort, header, extendedCdb, immediateData, advertised }: TaskParts,
    private readonly mover: Datamover,
  ) {
    this.initiatorPort = initiatorPort;
    this.initiatorTaskTag = header.initiatorTaskTag;
    this.lun = header.lun.slice();
    this.cdb = extendedCdb === undefined ? header.cdb.slice() : joined(header.cdb, extendedCdb);
    this.attribute = ATTRIBUTES[header.attribute] ?? 'SIMPLE';
    this.dataOutBytes = header.write ? header.expectedDataTransferLength : 0;
    this.dataInBytes = header.read ? header.expectedDataTransferLength : 0;
    this.advertised = advertised;
    this.takesCmdSn = !header.immediate;
    this.immediateData = immediateData.length === 0 ? NO_DATA : immediateData.slice();
  }

  get signal(): TaskSignal {
    return this.abort;
  }

  get unsolicitedBytes(): number {
    return this.immediateData.length;
  }

  async pull(offset: number, into: Uint8Array): Promise<void> {
    const own = this.immediateData.subarray(offset, offset + into.length);
    into.set(own);
    if (own.length === into.length) return;
    await this.mover.getData(this, offset + own.length, into.subarray(own.length));
  }

  push(offset: number, from: Uint8Array): Promise<void> {
    return this.mover.putData(this, offset, from);
  }

  /** Resolves when it has ended in any way. */
  get ended(): Promise<void> {
    if (this.hasEnded) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  /** It has ended. */
  end(): void {
    this.hasEnded = true;
    for (const resolve of this.waiters) resolve();
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}
