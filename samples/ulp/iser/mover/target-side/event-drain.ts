/**
 * Takes the events of one connection in a context of its own, which drains the dispatcher and only
 * then enables the next upcall. It is what iSER wanted of kDAPL in August 2005 (docs/iser.md shows
 * each step beside the question of that review).
 */
import { DatError, type DatEvent, EventBatch, type Evd } from 'dapl';

/** Events of one connection that are taken in a row, before others have their turn. */
const BUDGET = 64;

export type TakeEvent = (event: DatEvent) => void;
/** Takes a completion out of a batch, which has no object for it. */
export type TakeCompletion = (batch: EventBatch, at: number) => void;

/** Runs soon, outside of any upcall. */
export type RunLater = (run: () => void) => void;

type State =
  /** The dispatcher makes an upcall for the next event. */
  | 'ENABLED'
  /** Upcalls are disabled; the own context is at work, or will be. */
  | 'DRAINING'
  /** No event is taken any more. */
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

  /** Takes what waits, and enables upcalls. */
  start(): void {
    this.runLater(() => this.drain());
  }

  /**
   * No event is taken any more: resolves when the upcall in progress has ended, so that what it
   * uses may go.
   */
  async tearDown(): Promise<void> {
    this.state = 'TORN DOWN';
    // An adapter that is closed has freed it.
    if (!this.evd.isFreed) await this.evd.modifyUpcall('TEARDOWN');
  }

  /** One event has come. The rest is drained outside of the upcall. */
  private readonly onUpcall = (event: DatEvent): void => {
    if (this.state !== 'ENABLED') return;
    this.state = 'DRAINING';
    this.evd.modifyUpcall('DISABLE');
    this.take(event);
    this.runLater(() => this.drain());
  };

  /** The own context: everything that waits, then the next upcall is asked for. */
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

  /** @returns false when events wait: upcalls are as they were, and the context goes on */
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
