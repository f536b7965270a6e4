/** A disk of a target: its backend, and the state that SCSI keeps for it. */
import type { BlockBackend, BlockGeometry } from '../../../block/index.js';
import type { ConditionName } from '../common/conditions.js';
import { PersistentReservations } from '../reservations/persistent.js';
import type { Access } from '../reservations/types.js';
import { checkIdentity, type Identity } from './identity.js';
import { ModePages } from './mode-pages.js';
import { TaskSet } from './task-set.js';

/**
 * Separates commands that read and then write (COMPARE AND WRITE, ORWRITE) from all other accesses
 * to the medium. It is only held while the backend works, never while waiting for an initiator.
 */
class MediumLock {
  private shared = 0;
  private isExclusive = false;
  private readonly waiting: { readonly isExclusive: boolean; readonly enter: () => void }[] = [];

  /** Runs together with any number of others of this kind. */
  async withOthers<T>(work: () => Promise<T>): Promise<T> {
    if (this.isExclusive || this.waiting.length > 0) await this.queue(false);
    else this.shared++;
    try {
      return await work();
    } finally {
      this.shared--;
      this.admit();
    }
  }

  async alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.isExclusive || this.shared > 0 || this.waiting.length > 0) await this.queue(true);
    else this.isExclusive = true;
    try {
      return await work();
    } finally {
      this.isExclusive = false;
      this.admit();
    }
  }

  private queue(isExclusive: boolean): Promise<void> {
    return new Promise((enter) => this.waiting.push({ isExclusive, enter }));
  }

  /** Admits waiting commands in order of arrival, as far as possible. */
  private admit(): void {
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      if (this.isExclusive || (next.isExclusive && this.shared > 0)) return;
      this.waiting.shift();
      if (next.isExclusive) this.isExclusive = true;
      else this.shared++;
      next.enter();
    }
  }
}

/** Limits of one command to a logical unit, as in the block limits page (SBC-3 6.6.3). */
interface Limits {
  readonly maxTransferBlocks: number;
  readonly optimalTransferBlocks: number;
  readonly maxCompareAndWriteBlocks: number;
  readonly maxUnmapBlocks: number;
  readonly maxUnmapDescriptors: number;
  readonly maxWriteSameBlocks: number;
  /** Logical blocks in a physical one: writes and discards of whole physical blocks are cheaper. */
  readonly physicalBlocks: number;
}

const KIB = 1024;
const MIB = KIB * KIB;

/**
 * Limit of READ, WRITE and VERIFY, which use the buffer pool chunk by chunk: it bounds their time.
 */
const MAX_TRANSFER_BYTES = 32 * MIB;
const OPTIMAL_TRANSFER_BYTES = 256 * KIB;
/** Limit of COMPARE AND WRITE, which keeps both halves of the data in its own memory. */
const MAX_COMPARE_AND_WRITE_BYTES = 64 * KIB;
const MAX_WRITE_SAME_BYTES = 64 * MIB;
/** Block size of file systems and flash; holes in files consist of whole ones. */
const PHYSICAL_BLOCK_BYTES = 4096;
const MAX_UNMAP_BLOCKS = 1 << 20;
const MAX_UNMAP_DESCRIPTORS = 256;

function limitsOf({ blockBytes }: BlockGeometry): Limits {
  return {
    maxTransferBlocks: MAX_TRANSFER_BYTES / blockBytes,
    optimalTransferBlocks: OPTIMAL_TRANSFER_BYTES / blockBytes,
    maxCompareAndWriteBlocks: MAX_COMPARE_AND_WRITE_BYTES / blockBytes,
    maxUnmapBlocks: MAX_UNMAP_BLOCKS,
    maxUnmapDescriptors: MAX_UNMAP_DESCRIPTORS,
    maxWriteSameBlocks: MAX_WRITE_SAME_BYTES / blockBytes,
    physicalBlocks: PHYSICAL_BLOCK_BYTES / blockBytes,
  };
}

/** Unit attention conditions that each nexus must still be told (SAM-5 5.14). */
class Attentions {
  private readonly pending = new Map<string, ConditionName[]>();

  /** Begins to keep conditions for a nexus. */
  open(nexus: string): void {
    if (!this.pending.has(nexus)) this.pending.set(nexus, []);
  }

  close(nexus: string): void {
    this.pending.delete(nexus);
  }

  /** Raises a condition for one nexus; a pending one is not repeated. */
  raise(nexus: string, condition: ConditionName): void {
    const conditions = this.pending.get(nexus);
    if (conditions?.includes(condition) === false) conditions.push(condition);
  }

  raiseForAll(condition: ConditionName, except?: string): void {
    for (const nexus of this.pending.keys()) if (nexus !== except) this.raise(nexus, condition);
  }

  /** Handles a reset: earlier pending conditions do not matter any more. */
  reset(condition: ConditionName): void {
    for (const conditions of this.pending.values()) conditions.splice(0, Infinity, condition);
  }

  /** Takes the oldest condition, which is then reported. */
  take(nexus: string): ConditionName | undefined {
    return this.pending.get(nexus)?.shift();
  }
}

export interface LogicalUnitOptions {
  readonly backend: BlockBackend;
  readonly identity: Identity;
  /** Receives errors of the program itself, which were answered with INTERNAL TARGET FAILURE. */
  readonly onFault?: (error: unknown) => void;
}

export class LogicalUnit {
  readonly backend: BlockBackend;
  readonly identity: Identity;
  readonly limits: Limits;
  readonly tasks = new TaskSet();
  readonly attentions = new Attentions();
  readonly modePages = new ModePages();
  readonly reservations = new PersistentReservations();
  readonly lock = new MediumLock();
  readonly onFault: (error: unknown) => void;
  /** The nexus of RESERVE(6). */
  reservedBy: string | undefined;
  /** False after START STOP UNIT has stopped it. */
  isStarted = true;

  /** @throws RangeError for names that SCSI cannot represent */
  constructor({ backend, identity, onFault = () => {} }: LogicalUnitOptions) {
    this.backend = backend;
    this.identity = checkIdentity(identity);
    this.limits = limitsOf(backend);
    this.onFault = onFault;
  }

  /** True if reservations let the nexus do this. */
  allows(nexus: string, access: Access): boolean {
    if (access === 'exempt') return true;
    if (this.reservedBy !== undefined && this.reservedBy !== nexus) return false;
    return this.reservations.allows(nexus, access);
  }

  nexusOpened(nexus: string): void {
    this.attentions.open(nexus);
  }

  /** Persistent reservations stay: they are the initiator port's, not the session's. */
  async nexusLost(nexus: string): Promise<void> {
    await this.tasks.abort(nexus, (each) => each === nexus);
    if (this.reservedBy === nexus) this.reservedBy = undefined;
    this.attentions.close(nexus);
  }

  /**
   * Resets the unit (SAM-5 6.3): ends tasks and RESERVE(6), and restores the initial mode pages.
   */
  async reset(by: string): Promise<void> {
    await this.tasks.abort(by, () => true);
    this.reservedBy = undefined;
    this.isStarted = true;
    this.modePages.reset();
    this.attentions.reset('BUS_DEVICE_RESET_FUNCTION_OCCURRED');
  }
}
