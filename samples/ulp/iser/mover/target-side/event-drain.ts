/**
 * Takes the events of one connection in a context of its own, which drains the dispatcher and only
 * then enables the next upcall. It is what iSER wanted of kDAPL in August 2005 (docs/iser.md shows
 * each step beside the question of that review).
 */
import { DatError, type DatEvent, EventBatch, type Evd } from 'dapl';

/** Events of one connection that are taken in a row, before other connections run. */
const BUDGET = 64;

export type TakeEvent = (event: DatEvent) => void;
/** Takes a completion from a batch, which has no object for it. */
export type TakeCompletion = (batch: EventBatch, at: number) => void;

/** Runs soon, outside of any upcall. */
export type RunLater = (run: () => void) => void;

type State =
  /** The dispatcher makes an upcall for the next event. */
  | 'ENABLED'
  /** Upcalls are disabled; the drain is running, or will run. */
  | 'DRAINING'
  /** No more events are taken. */
  | 'TORN DOWN';

export class EventDrain {
  private state: State = 'DRAINING';
  private readonly batch = new EventBatch(BUDGET);

  constructor(
    private readonly evd: Evd,
    private readonly take: TakeEvent,
    private readonly runLater: RunLater,
    private readonly takeCompletion: TakeCompletion = () => undefined,
  ) {}

  /** Takes pending events, and enables upcalls. */
  start(): void {
    this.runLater(() => this.drain());
  }

  /**
   * Stops taking events. Resolves when the upcall in progress has ended, so that its resources can
   * be freed.
   */
  async tearDown(): Promise<void> {
    this.state = 'TORN DOWN';
    // An adapter that is closed has freed it.
    if (!this.evd.isFreed) await this.evd.modifyUpcall('TEARDOWN');
  }

  /** Handles one event. The others are drained outside the upcall. */
  private readonly onUpcall = (event: DatEvent): void => {
    if (this.state !== 'ENABLED') return;
    this.state = 'DRAINING';
    this.evd.modifyUpcall('DISABLE');
    this.take(event);
    this.runLater(() => this.drain());
  };

  /** Drains all pending events in a context of its own, then enables the next upcall. */
  private drain(): void {
    for (let taken = 0; taken < BUDGET; taken += this.batch.count) {
      if (this.state !== 'DRAINING' || this.evd.isFreed) return;
      // Refused: something has come since the last look. So the draining goes on.
      if (this.evd.dequeueInto(this.batch, BUDGET - taken) === 0 && this.enable()) return;
      this.takeBatch();
    }
    this.runLater(() => this.drain());
  }

  private takeBatch(): void {
    const { batch } = this;
    for (let at = 0; at < batch.count && this.state === 'DRAINING'; at++) {
      const event = batch.events[at];
      if (event === undefined) this.takeCompletion(batch, at);
      else this.take(event);
    }
  }

  /** @returns false if events are pending; upcalls are then unchanged */
  private enable(): boolean {
    this.state = 'ENABLED';
    try {
      this.evd.modifyUpcall('ONE', this.onUpcall, { pending: 'refuse' });
      return true;
    } catch (error) {
      if (!DatError.isDatError(error) || error.code !== 'DAT_INVALID_STATE') throw error;
      this.state = 'DRAINING';
      return false;
    }
  }
}
