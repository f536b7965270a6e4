/** A disk behind a target: its backend, and all that SCSI keeps about it. */
import type { BlockBackend } from '../../../block/index.js';
import { PersistentReservations } from '../reservations/persistent.js';
import type { Access } from '../reservations/types.js';
import { Attentions } from './attentions.js';
import { checkIdentity, type Identity } from './identity.js';
import { type Limits, limitsOf } from './limits.js';
import { MediumLock } from './medium-lock.js';
import { ModePages } from './mode-pages.js';
import { TaskSet } from './task-set.js';

export interface LogicalUnitOptions {
  readonly backend: BlockBackend;
  readonly identity: Identity;
  /** What went wrong in the program itself, and was answered with INTERNAL TARGET FAILURE. */
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

  /** @throws RangeError for names that SCSI cannot hold */
  constructor({ backend, identity, onFault = () => {} }: LogicalUnitOptions) {
    this.backend = backend;
    this.identity = checkIdentity(identity);
    this.limits = limitsOf(backend);
    this.onFault = onFault;
  }

  /** Whether reservations let the nexus do this. */
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

  /** SAM-5 6.3: tasks and RESERVE(6) end, mode pages are as in the beginning. */
  async reset(by: string): Promise<void> {
    await this.tasks.abort(by, () => true);
    this.reservedBy = undefined;
    this.isStarted = true;
    this.modePages.reset();
    this.attentions.reset('BUS_DEVICE_RESET_FUNCTION_OCCURRED');
  }
}
