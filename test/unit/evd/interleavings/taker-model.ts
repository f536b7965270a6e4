/** What takes events of an EVD besides upcalls: a waiter, an iteration, a subscriber. */
import type { DatEvent } from '../../../../core/evd/index.js';
import type { EvdWorld } from './evd-world.js';
import { internalsOf } from './fingerprint.js';
import { Fatal, Violation } from './rules.js';
import type { Action } from './search.js';

const TIMEOUT_MS = 1;

export class TakerModel {
  /** Events that the waiter (or the iteration, while it waits) waits for. */
  private threshold = 0;
  private iterator: AsyncIterator<readonly DatEvent[]> | undefined;
  private detach: (() => void) | undefined;
  private abort: AbortController | undefined;
  /** Errors that the waiter may get. */
  private expected: string[] = [];

  constructor(private readonly world: EvdWorld) {}

  get present(): 'none' | 'some' {
    const some = this.threshold > 0 || this.iterator !== undefined || this.detach !== undefined;
    return some ? 'some' : 'none';
  }

  /** The same while a step is under way, when a waiter that is over has not heard of it yet. */
  get isThere(): boolean {
    const { waiter } = internalsOf(this.world.evd).dispatcher;
    return waiter !== undefined || this.iterator !== undefined || this.detach !== undefined;
  }

  get waits(): boolean {
    return this.threshold > 0 || this.iterator !== undefined;
  }

  get wants(): boolean {
    return this.threshold > 0 || this.detach !== undefined;
  }

  addActions(list: Action[]): void {
    const { takers } = this.world.space;
    if (this.threshold > 0) {
      list.push(['timeout', () => this.world.serve(() => this.timeout())]);
      if (this.iterator === undefined) list.push(['abort', () => this.interrupt()]);
      list.push(['unwaitable', () => this.setUnwaitable()]);
    } else if (this.iterator !== undefined) {
      list.push(['next', () => this.next()], ['return', () => this.leave()]);
    }
    if (this.detach !== undefined) list.push(['unsubscribe', () => this.unsubscribe()]);
    if (this.present !== 'none' || this.world.isUpcallEnabled) return;
    if (takers.includes('waiter')) {
      list.push(['wait', () => this.wait(1)], ['wait for 2', () => this.wait(2)]);
    }
    if (takers.includes('iterator')) list.push(['iterate', () => this.iterate()]);
    if (takers.includes('subscription')) list.push(['subscribe', () => this.subscribe()]);
  }

  checkQuiet(): void {
    const { pending } = this.world;
    if (this.threshold > 0 && pending >= this.threshold) {
      throw new Violation('a waiter waits although there are events');
    }
    if (this.detach !== undefined && pending > 0) {
      throw new Violation('an event is stranded although there is a subscriber');
    }
  }

  /** The EVD has been freed: everything here ends. */
  freed(): void {
    this.detach = undefined;
  }

  fingerprint(): string {
    return `${this.threshold}${this.iterator === undefined ? '' : 'i'}${this.detach ? 's' : ''}`;
  }

  private wait(threshold: number): void {
    this.threshold = threshold;
    this.expected = [];
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.world.evd.wait({ threshold, timeoutMs: TIMEOUT_MS, signal }).then(
      ({ event, nmore }) => {
        if (nmore < threshold - 1) throw new Fatal(`${nmore} more of ${threshold}`);
        this.over();
        this.world.take(event);
      },
      (error: unknown) => this.failed(error),
    );
  }

  private failed(error: unknown): void {
    this.over();
    const { code } = error as { code?: string };
    const aborted = code === 'DAT_ABORT' && this.world.evd.isFreed;
    if (!aborted && !this.expected.includes(code ?? ''))
      throw new Fatal(`a waiter got ${String(error)}`);
  }

  private over(): void {
    this.threshold = 0;
    this.abort = undefined;
  }

  private timeout(): void {
    const [timer] = this.world.host.active;
    if (timer === undefined) {
      if (this.iterator === undefined) throw new Fatal('a waiter without a timer');
      return;
    }
    this.expected.push('DAT_TIMEOUT_EXPIRED');
    this.world.host.active.delete(timer);
    timer.expire(0);
  }

  private interrupt(): void {
    this.expected.push('DAT_INTERRUPTED_CALL');
    this.abort?.abort();
  }

  private setUnwaitable(): void {
    this.expected.push('DAT_INVALID_STATE');
    this.world.evd.setUnwaitable();
    this.world.evd.clearUnwaitable();
  }

  private iterate(): void {
    this.iterator = this.world.evd[Symbol.asyncIterator]();
    this.next();
  }

  private next(): void {
    this.threshold = 1;
    this.expected = [];
    this.iterator?.next().then(
      ({ value }: IteratorResult<readonly DatEvent[], undefined>) => {
        this.over();
        if (value === undefined) {
          this.iterator = undefined;
          if (!this.world.evd.isFreed) throw new Fatal('an iteration ends by itself');
        }
        for (const event of value ?? []) this.world.take(event);
      },
      (error: unknown) => {
        this.iterator = undefined;
        this.failed(error);
      },
    );
  }

  private leave(): void {
    const { iterator } = this;
    this.iterator = undefined;
    void iterator?.return?.();
  }

  private subscribe(): void {
    this.detach = () => undefined;
    let live = true;
    const detach = this.world.evd.attachSink({
      next: (event) => {
        if (!live) throw new Fatal('an event after unsubscribing');
        this.world.onPushed(event);
      },
      complete: () => {
        if (!this.world.evd.isFreed) throw new Fatal('events$ completes by itself');
      },
    });
    this.detach = () => {
      live = false;
      detach();
    };
  }

  unsubscribe(): void {
    this.detach?.();
    this.detach = undefined;
  }
}
