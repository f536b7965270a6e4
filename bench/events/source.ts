/** A device that has but a completion queue, which is as full as we say: the EVD by itself. */
import type { EvdHost } from '../../core/evd/evd-host.js';
import { CompletionOwners, type EventBatch } from '../../core/evd/index.js';
import type { Ep } from '../../core/dat/index.js';
import { dtoEvent } from '../../core/dat/common/dto-event.js';
import { HandlerPacer } from '../../providers/hca/pacing/index.js';
import {
  CQE,
  CQE_BYTES,
  type CompletionQueue,
  type CompletionQueueInit,
  Ring,
  WcOpcode,
  ringEntries,
  silentLogger,
} from '../../core/spi/index.js';

export class CompletionSource implements EvdHost {
  readonly owners = new CompletionOwners();
  readonly clock = { now: (): number => 0 };
  readonly timers = { start: ignore, stop: ignore };
  readonly processHold = { retain: ignore, release: ignore };
  readonly logger = silentLogger;
  readonly reportAsync = ignore;
  readonly reportFailure = ignore;
  readonly onEvdFreed = ignore;
  readonly onCnoFreed = ignore;
  readonly scheduler = {
    defer: (task: () => void): void => void this.tasks.push(task),
    // Time stands still: a look at the clock is the device's, and makes a number.
    mayStart: (): boolean => this.handlers.startsUnseen() || this.handlers.startsAt(0),
  };
  readonly device = {
    attributes: { maxCompletionQueueEntries: 4096, reportsSolicited: false },
    createCompletionQueue: (init: CompletionQueueInit): CompletionQueue => this.create(init),
    progress: (): boolean => false,
  };
  private readonly handlers = new HandlerPacer();
  private tasks: (() => void)[] = [];
  private running: (() => void)[] = [];
  private init: CompletionQueueInit | undefined;
  private ring: Ring | undefined;
  private armed = false;

  /** Successful receives appear; who asked for it is told, as at the end of a device's pump. */
  complete(count: number): void {
    const ring = this.ring!;
    ring.producer = (ring.producer + count) >>> 0;
    this.handlers.begins(0, false);
    if (this.armed) {
      this.armed = false;
      this.init?.onNotify();
    }
    while (this.tasks.length > 0) this.runTasks();
  }

  /** Two lists take turns, so that the bench itself allocates nothing. */
  private runTasks(): void {
    const due = this.tasks;
    this.tasks = this.running;
    this.running = due;
    for (const task of due) task();
    due.length = 0;
  }

  private create(init: CompletionQueueInit): CompletionQueue {
    const ring = Ring.allocate(ringEntries(init.minEntries), CQE_BYTES);
    const ep = {} as Ep;
    const context = this.owners.allocate({
      onCompletion: () => true,
      toEvent: (words, at) => dtoEvent(ep, words, at),
      fill: (batch: EventBatch, slot, words, at) => batch.setDto(slot, ep, words, at),
    });
    // Written once: the ring is produced again and again with what it holds.
    for (let entry = 0; entry < ring.entries; entry++) {
      const at = ring.wordOf(entry);
      ring.words[at + CQE.CONTROL] = WcOpcode.RECV << 8;
      ring.words[at + CQE.COOKIE_LO] = entry;
      ring.words[at + CQE.BYTE_LENGTH] = 64;
      ring.words[at + CQE.QP_CONTEXT] = context;
    }
    this.init = init;
    this.ring = ring;
    return {
      ring,
      poll: () => ring.length,
      arm: () => (this.armed = true),
      setPolling: ignore,
      resize: ignore,
      destroy: ignore,
    };
  }
}

function ignore(): void {
  return undefined;
}
