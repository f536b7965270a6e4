/** The commands in progress at a logical unit, and which of them may start (SAM-5 8). */
import { type ScsiCommand, ScsiStatus, type TaskAttribute } from '../common/command.js';
import { ScsiError } from '../common/scsi-error.js';

/** More commands than this end with TASK SET FULL. */
export const MAX_TASKS = 4096;

/** A command that was entered. */
export interface TaskEntry {
  readonly command: ScsiCommand;
  /** Aborted by a function of another nexus, which TAS may have answered. */
  isAbortedByOther: boolean;
}

/** Which of the commands before it a command waits for (SAM-5 8.6). */
const WAITS_FOR: Readonly<Record<TaskAttribute, readonly TaskAttribute[]>> = {
  SIMPLE: ['ORDERED', 'HEAD OF QUEUE'],
  ORDERED: ['SIMPLE', 'ORDERED', 'HEAD OF QUEUE'],
  'HEAD OF QUEUE': [],
  // Refused before it gets here: NORMACA is 0.
  ACA: [],
};

interface Entry extends TaskEntry {
  readonly ended: Promise<void>;
  readonly end: () => void;
}

export class TaskSet {
  private readonly entries = new Set<Entry>();
  /** Of attributes other than SIMPLE: while there is none, nothing waits. */
  private orderings = 0;

  get size(): number {
    return this.entries.size;
  }

  /**
   * Enters a command, waits until it may start, and runs it.
   * @throws ScsiError TASK SET FULL, and what the work throws
   */
  async run<T>(command: ScsiCommand, work: (entry: TaskEntry) => Promise<T>): Promise<T> {
    if (this.entries.size >= MAX_TASKS) throw ScsiError.withStatus(ScsiStatus.TASK_SET_FULL);
    const isOrdering = command.attribute !== 'SIMPLE';
    const before = isOrdering || this.orderings > 0 ? [...this.entries] : [];
    const entry = this.enter(command);
    if (isOrdering) this.orderings++;
    try {
      const waitsFor = WAITS_FOR[command.attribute];
      for (const { command: older, ended } of before) {
        if (waitsFor.includes(older.attribute)) await ended;
      }
      return await work(entry);
    } finally {
      if (isOrdering) this.orderings--;
      this.entries.delete(entry);
      entry.end();
    }
  }

  /** Aborts commands and waits until they have ended. @returns the nexuses that they came from */
  async abort(by: string, concerns: (nexus: string) => boolean): Promise<ReadonlySet<string>> {
    const nexuses = new Set<string>();
    const ends: Promise<void>[] = [];
    for (const entry of this.entries) {
      const nexus = entry.command.initiatorPort;
      if (!concerns(nexus)) continue;
      nexuses.add(nexus);
      entry.isAbortedByOther = nexus !== by;
      entry.command.abort.abort();
      ends.push(entry.ended);
    }
    await Promise.all(ends);
    return nexuses;
  }

  private enter(command: ScsiCommand): Entry {
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const entry = { command, ended, end, isAbortedByOther: false };
    this.entries.add(entry);
    return entry;
  }
}
