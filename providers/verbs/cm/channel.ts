/** An event channel of librdmacm: its records as events, one at a time. */
import type { Logger } from '../../../core/spi/index.js';
import {
  CmEventType,
  type CmNative,
  EVENT_PRIVATE_DATA,
  EVENT_RECORD_BYTES,
  EVENT_WORD,
} from '../addon/rdmacm.js';
import { cmOpeningError } from '../opening/opening-error.js';
import { errnoError, errnoName } from '../system/errno.js';

/** Failed reads in a row after which a channel is given up. */
const MAX_READ_FAILURES = 8;

/** An event, copied out and acknowledged. */
export interface CmNativeEvent {
  readonly type: CmEventType;
  /** The identifier; for a connection request, the new one. */
  readonly id: number;
  /** 0, a negative errno, a reject reason, or the status of a SIDR_REP. */
  readonly status: number;
  readonly isDatagram: boolean;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly qpn: number;
  readonly qkey: number;
  readonly privateData: Uint8Array;
}

export class CmChannel {
  readonly number: number;
  private readonly record = new Uint8Array(EVENT_RECORD_BYTES);
  private readonly words = new Uint32Array(this.record.buffer, 0, EVENT_PRIVATE_DATA / 4);
  private isOpen = true;
  private isWatched = true;
  private readFailures = 0;
  private isGivenUp = false;

  /**
   * @param onGivenUp no event comes any more, for this errno
   * @throws SpiError that names the file that does not open, or the call, and what to do about it
   */
  constructor(
    private readonly native: CmNative,
    private readonly logger: Logger,
    private readonly onEvent: (event: CmNativeEvent) => void,
    private readonly onGivenUp: (errno: number) => void,
  ) {
    const result = native.cmOpenChannel(this.record, () => this.onReadable());
    if (result < 0) {
      const hint =
        'is the kernel module rdma_ucm loaded, and may you open /dev/infiniband/rdma_cm?';
      throw cmOpeningError(errnoError('rdma_create_event_channel', -result, hint));
    }
    this.number = result;
  }

  /** While not watched, events stay in the kernel. */
  watch(on: boolean): void {
    if (!this.isOpen || this.isGivenUp || on === this.isWatched) return;
    this.isWatched = on;
    this.native.cmWatchChannel(this.number, on ? 1 : 0);
  }

  /** Its identifiers must have been destroyed. */
  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.native.cmCloseChannel(this.number);
  }

  private onReadable(): void {
    const event = this.read();
    if (event.type !== CmEventType.CHANNEL_FAILED) {
      this.readFailures = 0;
      this.onEvent(event);
      return;
    }
    this.logger.error(`CM: rdma_get_cm_event: ${errnoName(event.status)}`);
    if (++this.readFailures < MAX_READ_FAILURES) return;
    this.watch(false);
    this.isGivenUp = true;
    this.onGivenUp(event.status);
  }

  private read(): CmNativeEvent {
    const word = (name: keyof typeof EVENT_WORD): number => this.words[EVENT_WORD[name]] ?? 0;
    const end = EVENT_PRIVATE_DATA + word('PRIVATE_DATA_LENGTH');
    return {
      type: word('TYPE') as CmEventType,
      id: word('ID'),
      status: word('STATUS') | 0,
      isDatagram: word('IS_DATAGRAM') !== 0,
      responderResources: word('RESPONDER_RESOURCES'),
      initiatorDepth: word('INITIATOR_DEPTH'),
      retryCount: word('RETRY_COUNT'),
      rnrRetryCount: word('RNR_RETRY_COUNT'),
      qpn: word('QPN'),
      qkey: word('QKEY'),
      privateData: this.record.slice(EVENT_PRIVATE_DATA, end),
    };
  }
}
