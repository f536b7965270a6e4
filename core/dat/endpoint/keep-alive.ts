/**
 * keepAliveMs: detects a dead peer of an idle connection. A peer whose process was killed, or whose
 * machine is off, sends nothing, and a consumer that only waits for it would wait for ever. So
 * after a time without a sign of life an empty RDMA write asks for an acknowledgement. The queue
 * pair's own retries then detect the loss.
 */
import { TimerEntry } from '../../spi/index.js';
import type { EpRecord } from './endpoint-state.js';

/** Checks per `keepAliveMs`: the silence may be under-estimated by one interval. */
const LOOKS = 4;

/** Runs while the endpoint is CONNECTED. Its timer does not keep the process alive. */
export class EpKeepAlive extends TimerEntry {
  private running = false;
  private heard = 0;
  /** Checks without a sign of life. */
  private quiet = 0;

  constructor(private readonly record: EpRecord) {
    super();
  }

  start(): void {
    this.running = true;
    this.onHeard(this.record.queues.lifeSign());
    this.lookAgain();
  }

  stop(): void {
    if (!this.running) return;
    this.running = false;
    this.record.core.context.timers.stop(this);
    this.record.events.watchRequests(false);
  }

  override expire(): void {
    this.record.takeInCompletions();
    if (!this.running) return;
    const heard = this.record.queues.lifeSign();
    if (heard !== this.heard) this.onHeard(heard);
    else if (++this.quiet >= LOOKS - 1) this.probe();
    if (this.running) this.lookAgain();
  }

  private onHeard(heard: number): void {
    this.heard = heard;
    this.quiet = 0;
    this.record.events.watchRequests(false);
  }

  /** A request in flight already is a probe: only its failure has to be noticed. */
  private probe(): void {
    const { queues } = this.record;
    this.record.events.watchRequests(true);
    // The scan may have ended the connection.
    if (!this.running) this.record.events.watchRequests(false);
    if (!this.running || queues.sends.awaitsCompletion) return;
    try {
      queues.postProbe();
    } catch {
      // The device is gone, and reports that itself.
      this.stop();
    }
  }

  private lookAgain(): void {
    const { core, attributes } = this.record;
    const { timers, clock } = core.context;
    timers.start(this, clock.now() + (attributes.keepAliveMs * 1000) / LOOKS);
  }
}
