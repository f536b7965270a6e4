/**
 * The receive buffers of an endpoint: parts of one region, each posted as a receive, or in the
 * hands of the consumer, or neither (the queue pair that it was posted to is no more).
 */
import type { DatEvent, DtoCompletionEvent } from '../evd/index.js';
import type { Ep } from '../dat/endpoint/ep.js';
import type { Lmr } from '../dat/memory/lmr.js';
import type { LmrSegment } from '../dat/memory/segment.js';
import type { ReceiveBuffer } from './received.js';

/** Cookies from here on are ours, so that they are not taken for those of the consumer's posts. */
const FIRST_COOKIE = 2 ** 52;
/** More than any receive queue holds. */
const COOKIES_A_LIFE = 2 ** 20;
const LIVES = 2 ** 32;

let lives = 0;

type Place = 'posted' | 'lent' | 'idle';

export class ReceiveBuffers {
  private readonly buffers: Buffer[] = [];
  private region: Lmr | undefined = undefined;
  /** The queue pair that they are posted to. */
  private qpn: number | undefined = undefined;
  private firstCookie = 0;
  /** First cookies of this life of the endpoint, and of those before. */
  private readonly firsts = new Set<number>();

  constructor(
    private readonly ep: Ep,
    private readonly count: number,
    readonly bufferBytes: number,
    /** The endpoint has been reset: what was posted is gone. */
    private readonly onReset: () => void,
  ) {}

  /** Posts those that are not. @throws DatError as `ia.allocate` and `ep.postRecv` */
  post(): void {
    const { ep } = this;
    if (this.region === undefined) this.allocate();
    if (this.qpn !== ep.qpn) {
      this.qpn = ep.qpn;
      this.firstCookie = FIRST_COOKIE + (lives++ % LIVES) * COOKIES_A_LIFE;
      this.firsts.add(this.firstCookie);
      for (const buffer of this.buffers) if (buffer.place === 'posted') buffer.place = 'idle';
    }
    ep.burst(() => {
      for (const buffer of this.buffers) if (buffer.place === 'idle') this.postOne(buffer);
    });
  }

  /** One of these receives has completed; perhaps of a life that a reset has ended. */
  has(event: DatEvent): event is DtoCompletionEvent {
    if (event.type !== 'dto' || event.cookie < FIRST_COOKIE) return false;
    return this.firsts.has(event.cookie - (event.cookie % COOKIES_A_LIFE));
  }

  /**
   * A receive has completed: the buffer is the consumer's if it `succeeded`.
   * @returns undefined for one of a former life: it has been posted again since
   */
  take({ cookie }: DtoCompletionEvent, succeeded: boolean): ReceiveBuffer | undefined {
    const buffer = this.buffers[cookie - this.firstCookie];
    if (buffer !== undefined) buffer.place = succeeded ? 'lent' : 'idle';
    return buffer;
  }

  /** It is posted again. @throws DatError as `ep.postRecv`: it can be returned again then */
  private giveBack(buffer: Buffer): void {
    const { ep } = this;
    if (ep.isFreed) return;
    if (this.qpn === ep.qpn) this.postOne(buffer);
    else buffer.place = 'idle';
  }

  private postOne(buffer: Buffer): void {
    this.ep.postRecv(buffer.segment, this.firstCookie + buffer.index);
    buffer.place = 'posted';
  }

  private allocate(): void {
    const { ep, count, bufferBytes } = this;
    const region = ep.ia.allocate(count * bufferBytes, { pz: ep.pz });
    this.region = region;
    for (let index = 0; index < count; index++) {
      const segment = region.segment(index * bufferBytes, bufferBytes);
      this.buffers.push(new Buffer(segment, index, (buffer) => this.giveBack(buffer)));
    }
    ep.state$.subscribe({
      next: (state) => {
        if (state === 'UNCONNECTED' && this.qpn !== undefined && this.qpn !== ep.qpn) {
          this.onReset();
        }
      },
      complete: () => {
        if (!region.isFreed) region.free();
      },
    });
  }
}

class Buffer implements ReceiveBuffer {
  place: Place = 'idle';

  constructor(
    readonly segment: LmrSegment,
    readonly index: number,
    private readonly giveBack: (buffer: Buffer) => void,
  ) {}

  get bytes(): Uint8Array {
    return this.segment.bytes;
  }

  release(): void {
    if (this.place === 'lent') this.giveBack(this);
  }
}
