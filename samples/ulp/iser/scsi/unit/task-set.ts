/** The commands in progress at a logical unit, and which of them may start (SAM-5 8). */
import { type ScsiCommand, ScsiStatus, type TaskAttribute } from '../common/command.js';
import { ScsiError } from '../common/scsi-error.js';

/** Limit of commands; more end with TASK SET FULL. */
export const MAX_TASKS = 4096;

/** Attributes of earlier commands of its nexus that a command waits for (SAM-5 8.6, TST 001b). */
const WAITS_FOR: Readonly<Record<TaskAttribute, readonly TaskAttribute[]>> = {
  SIMPLE: ['ORDERED', 'HEAD OF QUEUE'],
  ORDERED: ['SIMPLE', 'ORDERED', 'HEAD OF QUEUE'],
  'HEAD OF QUEUE': [],
  // Refused before it gets here: NORMACA is 0.
  ACA: [],
};

/**
 * An entry. No other command waits for most entries, so promises are only created for those that
 * wait.
 */
export class TaskEntry {
  /** True if another nexus aborted it: its initiator is told (SAM-5 5.6, TAS). */
  isAbortedByOther = false;
  private hasEnded = false;
  private waiters: (() => void)[] | undefined = undefined;

  constructor(readonly command: ScsiCommand) {}

  get ended(): Promise<void> {
    if (this.hasEnded) return Promise.resolve();
    return new Promise((resolve) => (this.waiters ??= []).push(resolve));
  }

  end(): void {
    this.hasEnded = true;
    for (const resolve of this.waiters ?? []) resolve();
  }
}

const NONE: readonly TaskEntry[] = [];

export class TaskSet {
  private readonly entries = new Set<TaskEntry>();
  /** Number of commands with an attribute other than SIMPLE: without any, no command waits. */
  private orderings = 0;

  get size(): number {
    return this.entries.size;
  }

  /**
   * Enters a command, waits until it may start, and runs it. @throws ScsiError TASK SET FULL, and
   * errors of the work
   */
  async run<T>(command: ScsiCommand, work: (entry: TaskEntry) => Promise<T>): Promise<T> {
    if (this.entries.size >= MAX_TASKS) throw ScsiError.withStatus(ScsiStatus.TASK_SET_FULL);
    const isOrdering = command.attribute !== 'SIMPLE';
    const before = isOrdering || this.orderings > 0 ? [...this.entries] : NONE;
    const entry = new TaskEntry(command);
    this.entries.add(entry);
    if (isOrdering) this.orderings++;
    try {
      const waitsFor = WAITS_FOR[command.attribute];
      for (const older of before) {
        const { initiatorPort, attribute } = older.command;
        const isOwn = initiatorPort === command.initiatorPort;
        if (isOwn && waitsFor.includes(attribute)) await older.ended;
      }
      return await work(entry);
    } finally {
      if (isOrdering) this.orderings--;
      this.entries.delete(entry);
      entry.end();
    }
  }

  /** Aborts commands, and resolves when they have ended. */
  async abort(by: string, concerns: (nexus: string) => boolean): Promise<void> {
    const ends: Promise<void>[] = [];
    for (const entry of this.entries) {
      const nexus = entry.command.initiatorPort;
      if (!concerns(nexus)) continue;
      entry.isAbortedByOther = nexus !== by;
      entry.command.abort.abort();
      ends.push(entry.ended);
    }
    await Promise.all(ends);
  }
}
