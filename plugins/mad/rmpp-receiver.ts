/** The receiving side of an RMPP transfer: runs the rows of rmpp-receive-states.ts. */
import {
  type Clock,
  MAD_BYTES,
  type MadAddress,
  Timer,
  type Timers,
} from '../../core/spi/index.js';
import type { RmppControl } from './rmpp-control.js';
import type { RmppCounters } from './rmpp-counters.js';
import type { Forgettable, RmppAllowance } from './rmpp-limits.js';
import {
  RMPP_RECEIVE_TABLE,
  type RmppReceiveAction,
  type RmppReceiveEvent,
  type RmppReceiveState,
} from './rmpp-receive-states.js';
import { RMPP_DATA_LENGTH, RMPP_FLAG, RMPP_STATUS, type RmppHeader } from './wire/rmpp-header.js';

/**
 * Results of placing a segment. Memory for a transfer grows with the data received, never with the
 * announced length, and all transfers of a module share one allowance (rmpp-limits.ts).
 */
type Placing = 'placed' | 'duplicate' | 'inconsistent' | 'tooMuch';

const FIRST_BYTES = 4096;

export class Reassembly {
  /** Segments 1 to this one have arrived. */
  inOrder = 0;
  private readonly dataBytes: number;
  private buffer: Uint8Array = new Uint8Array(0);
  /** Segments after `inOrder` that have arrived. */
  private readonly ahead = new Set<number>();
  private lastSegment = Infinity;
  private lastLength = 0;
  private announced = 0;

  constructor(
    private readonly headerBytes: number,
    private readonly allowance: RmppAllowance,
  ) {
    this.dataBytes = MAD_BYTES - headerBytes;
  }

  get isComplete(): boolean {
    return this.inOrder === this.lastSegment;
  }

  /** True if a segment arrived ahead of a missing one. */
  get hasHole(): boolean {
    return this.ahead.size > 0;
  }

  /**
   * Places a DATA segment.
   * @param number within the window
   * @param payloadLength from its RMPP header: 0 if nothing is announced
   */
  place(mad: Uint8Array, number: number, isLast: boolean, payloadLength: number): Placing {
    if (number <= this.inOrder || this.ahead.has(number)) return 'duplicate';
    if (number === 1) this.announced = payloadLength;
    if (!this.isConsistent(number, isLast, payloadLength)) return 'inconsistent';
    if (this.announced > this.allowance.limits.maxTransferBytes) return 'tooMuch';
    if (!this.makeRoom(this.headerBytes + number * this.dataBytes)) return 'tooMuch';
    if (number === 1) this.buffer.set(mad.subarray(0, this.headerBytes));
    if (isLast) {
      this.lastSegment = number;
      this.lastLength = payloadLength;
    }
    const at = this.headerBytes + (number - 1) * this.dataBytes;
    this.buffer.set(mad.subarray(this.headerBytes, MAD_BYTES), at);
    this.ahead.add(number);
    while (this.ahead.delete(this.inOrder + 1)) this.inOrder++;
    return 'placed';
  }

  /** The whole transfer, once complete: the first segment's headers, then the data. */
  get bytes(): Uint8Array {
    const pad = RMPP_DATA_LENGTH - this.lastLength;
    return this.buffer.subarray(0, this.headerBytes + this.inOrder * this.dataBytes - pad);
  }

  release(): void {
    this.allowance.giveBack(this.buffer.length);
    this.buffer = new Uint8Array(0);
    this.ahead.clear();
  }

  private isConsistent(number: number, isLast: boolean, payloadLength: number): boolean {
    if (number > this.lastSegment) return false;
    if (isLast) {
      const least = RMPP_DATA_LENGTH - this.dataBytes;
      if (payloadLength < least || payloadLength > RMPP_DATA_LENGTH) return false;
      for (const other of this.ahead) if (other > number) return false;
    }
    const { announced } = this;
    if (announced === 0) return true;
    const count = Math.ceil(announced / RMPP_DATA_LENGTH);
    if (number !== count) return number < count && !isLast;
    return isLast && payloadLength === announced - (count - 1) * RMPP_DATA_LENGTH;
  }

  private makeRoom(bytes: number): boolean {
    const { buffer } = this;
    if (bytes <= buffer.length) return true;
    let wanted = Math.max(buffer.length, FIRST_BYTES);
    while (wanted < bytes) wanted *= 2;
    wanted = Math.max(bytes, Math.min(wanted, this.allowance.limits.maxTransferBytes));
    if (!this.allowance.take(wanted - buffer.length, wanted)) return false;
    this.buffer = new Uint8Array(wanted);
    this.buffer.set(buffer);
    return true;
  }
}

/** Longest time from the first segment to the last. */
const TOTAL_US = 40_000_000;
/** Time for which a complete transfer is remembered. */
const LINGER_US = 10_000_000;

export interface RmppReceiverServices {
  readonly timers: Timers;
  readonly clock: Clock;
  readonly counters: RmppCounters;
  readonly control: RmppControl;
  readonly allowance: RmppAllowance;
  /** Segments that the peer may send ahead of an ACK. */
  readonly window: number;
}

export interface RmppReceiverInit {
  /** Headers of the first segment, RMPP header included. */
  readonly headers: Uint8Array;
  readonly peer: MadAddress;
  /** Receives the whole MAD, valid during the call. */
  readonly deliver: (data: Uint8Array) => void;
  /** The transfer is not receiving any more (onEnd), or not remembered any more (forget). */
  readonly onEnd: () => void;
  readonly forget: () => void;
}

export class RmppReceiver implements Forgettable {
  /**
   * Segments of our response that may be sent before an ACK; the peer states it with its turning
   * ACK.
   */
  replyWindow = 1;
  private state: RmppReceiveState = 'RECEIVING';
  private readonly reassembly: Reassembly;
  private windowLast = 1;
  private lastAcked = 0;
  /** The missing segment that was last reported to the sender. */
  private lastHole = 0;
  private readonly timer = new Timer(() => this.dispatch('expired'));

  constructor(
    private readonly services: RmppReceiverServices,
    private readonly init: RmppReceiverInit,
  ) {
    this.reassembly = new Reassembly(init.headers.length, services.allowance);
    services.timers.start(this.timer, services.clock.now() + TOTAL_US);
  }

  get isComplete(): boolean {
    return this.state === 'COMPLETE';
  }

  /** Handles a DATA segment of this transfer; true if it was new. */
  receive(mad: Uint8Array, header: RmppHeader): boolean {
    const event = this.classify(mad, header);
    if (event === undefined || event === 'repeated') this.services.counters.segmentsDropped++;
    if (event !== undefined) this.dispatch(event);
    return event !== undefined && event !== 'repeated';
  }

  abort(): void {
    this.dispatch('aborted');
  }

  abandon(): void {
    this.dispatch('abandoned');
  }

  private classify(mad: Uint8Array, header: RmppHeader): RmppReceiveEvent | undefined {
    const { segmentNumber, flags, payloadLengthOrNewWindowLast } = header;
    if (this.state === 'COMPLETE') return 'repeated';
    if (segmentNumber > this.windowLast) return undefined;
    const isLast = (flags & RMPP_FLAG.LAST) !== 0;
    const { reassembly } = this;
    const { inOrder } = reassembly;
    const placing = reassembly.place(mad, segmentNumber, isLast, payloadLengthOrNewWindowLast);
    if (placing === 'duplicate') return segmentNumber <= inOrder ? 'repeated' : undefined;
    return placing === 'placed' ? this.afterPlacing(inOrder) : placing;
  }

  private afterPlacing(before: number): RmppReceiveEvent {
    const { inOrder, hasHole, isComplete } = this.reassembly;
    if (isComplete) return 'complete';
    if (inOrder === this.windowLast) return 'windowFull';
    const filled = inOrder > before + 1;
    if (!filled && (!hasHole || this.lastHole === inOrder)) return 'kept';
    this.lastHole = inOrder;
    return 'hole';
  }

  private dispatch(event: RmppReceiveEvent): void {
    const row = RMPP_RECEIVE_TABLE[this.state][event];
    if (!row) return;
    this.state = row.next;
    for (const action of row.actions) this.actions[action]();
  }

  private readonly actions: Readonly<Record<RmppReceiveAction, () => void>> = {
    ack: () => {
      this.lastAcked = this.reassembly.inOrder;
      const { headers, peer } = this.init;
      this.services.control.ack(headers, peer, this.lastAcked, this.windowLast);
    },
    openWindow: () => (this.windowLast += this.services.window),
    linger: () => {
      const { timers, clock, allowance } = this.services;
      timers.start(this.timer, clock.now() + LINGER_US);
      allowance.remember(this);
    },
    deliver: () => {
      this.services.counters.transfersReceived++;
      this.init.deliver(this.reassembly.bytes);
    },
    release: () => {
      this.reassembly.release();
      this.init.onEnd();
    },
    stopTimer: () => this.services.timers.stop(this.timer),
    stopNoResources: () => {
      this.services.counters.transfersRefused++;
      const { headers, peer } = this.init;
      this.services.control.stop(headers, peer, RMPP_STATUS.RESOURCES_EXHAUSTED);
    },
    abortInconsistent: () => this.refuse(RMPP_STATUS.INCONSISTENT_LAST_PAYLOAD_LENGTH),
    abortTooLong: () => this.refuse(RMPP_STATUS.TOTAL_TIME_TOO_LONG),
    forget: () => {
      this.services.allowance.unremember(this);
      this.init.forget();
    },
  };

  private refuse(status: number): void {
    this.services.counters.transfersRefused++;
    this.services.control.abort(this.init.headers, this.init.peer, status);
  }
}
