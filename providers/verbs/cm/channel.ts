/** An event channel of librdmacm: its records as events, one at a time. */
import type { CmNative, CmEventType } from '../addon/rdmacm.js';
import { EVENT_PRIVATE_DATA, EVENT_RECORD_BYTES, EVENT_WORD } from '../addon/rdmacm.js';
import { errnoError } from '../system/errno.js';

/** A channel that cannot be read so often in a row is given up. */
export const MAX_READ_FAILURES = 8;

/** An event, copied out and acknowledged. */
export interface CmNativeEvent {
  readonly type: CmEventType;
  /** Of a connection request: the new identifier. */
  readonly id: number;
  /** 0: none. */
  readonly listenId: number;
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

  /** @throws SpiError that names the call, and what to do about it */
  constructor(
    private readonly native: CmNative,
    onEvent: (event: CmNativeEvent) => void,
  ) {
    const result = native.cmOpenChannel(this.record, () => onEvent(this.read()));
    if (result < 0) {
      const hint =
        'is the kernel module rdma_ucm loaded, and may you open /dev/infiniband/rdma_cm?';
      throw errnoError('rdma_create_event_channel', -result, hint);
    }
    this.number = result;
  }

  /** While not watched, events stay in the kernel. */
  watch(on: boolean): void {
    if (!this.isOpen || on === this.isWatched) return;
    this.isWatched = on;
    this.native.cmWatchChannel(this.number, on ? 1 : 0);
  }

  /** Its identifiers must have been destroyed. */
  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.native.cmCloseChannel(this.number);
  }

  private read(): CmNativeEvent {
    const word = (name: keyof typeof EVENT_WORD): number => this.words[EVENT_WORD[name]] ?? 0;
    const end = EVENT_PRIVATE_DATA + word('PRIVATE_DATA_LENGTH');
    return {
      type: word('TYPE') as CmEventType,
      id: word('ID'),
      listenId: word('LISTEN_ID'),
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
