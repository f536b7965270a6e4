/**
 * Contract of a MAD module: management datagrams on QP1 for agents (IBTA 13; the openib design of
 * October 2004). Handlers are synchronous and run in the pump; the receive handler of a response
 * runs before the send handler of its request.
 */
import type { Gid } from '../wire/address.js';
import type { WcStatus } from '../wire/ib.js';
import type { SpiError } from '../errors/spi-error.js';

/** Bytes of a MAD on the wire (IBTA 13.4.2). */
export const MAD_BYTES = 256;

export interface MadModule {
  /**
   * @throws SpiError('EINVAL') for a class, version or method that cannot be registered, or one
   * that another agent already has
   */
  registerAgent(options: MadAgentOptions): MadAgent;
  /** Unregisters remaining agents and closes QP1. Idempotent. */
  close(): Promise<void>;
}

export interface MadAgentOptions {
  /** 1 to 255 without the SMI classes. */
  readonly managementClass: number;
  readonly classVersion: number;
  /**
   * Methods (0 to 127) whose requests come to this agent; none for one that only sends requests.
   */
  readonly methods: readonly number[];
  /** Vendor classes 0x30 to 0x4F: the 24-bit OUI. */
  readonly oui?: number;
  /** Segments and reassembles by RMPP; for classes 0x03, 0x06, 0x10, 0x12 and 0x30 to 0x4F. */
  readonly rmpp?: boolean;
  readonly onReceive: (mad: ReceivedMad) => void;
  readonly onSend: (result: MadSendResult) => void;
}

export interface MadAgent {
  /**
   * Upper 32 bits of the transaction ids of this agent's requests: 24 bits, and above them the slot
   * of a shared device.
   */
  readonly hiTid: number;
  /**
   * Posts a MAD. `onSend` reports it exactly once.
   * @throws SpiError('EINVAL') for a wrong length, or when unregistering has begun
   */
  send(mad: MadSend): MadSendHandle;
  /** Reported as WR_FLUSH_ERR, never from inside this call. */
  cancel(handle: MadSendHandle): void;
  /** Restarts the wait for the response with this timeout. */
  modify(handle: MadSendHandle, timeoutUs: number): void;
  /** Resolves when every send has been returned; no handler runs afterwards. */
  unregister(): Promise<void>;
}

export interface MadAddress {
  readonly gid: Gid;
  readonly localGidIndex: number;
  readonly qpn: number;
  readonly qkey: number;
  /** The UDP port that a source sent from, if the provider knows it. */
  readonly udpPort?: number;
}

export interface MadSend {
  readonly destination: MadAddress;
  /**
   * The MAD: 256 bytes; copied before `send` returns. With RMPP, any length from the headers of its
   * class on: it goes as a transfer if it has not 256 bytes, or the RMPP flag "active" is set.
   * Bytes 24 to 35, the RMPP header, are then the module's.
   */
  readonly data: Uint8Array;
  /**
   * Wait for a response after the send completes, in microseconds; 0 expects none. Segments of the
   * response restart the wait. An RMPP transfer waits so long, but at most 2 s, for each ACK.
   */
  readonly timeoutUs: number;
  /** Retransmissions when no response comes; with RMPP, no ACK. */
  readonly retries: number;
  /** Copied to the result. */
  readonly context?: unknown;
}

/** Identity of a posted send. */
export interface MadSendHandle {
  readonly context: unknown;
}

export interface MadSendResult {
  readonly handle: MadSendHandle;
  /**
   * SUCCESS, RESP_TIMEOUT_ERR, WR_FLUSH_ERR (cancelled, unregistered, device gone), REM_ABORT_ERR
   * (RMPP), or the failure of the send.
   */
  readonly status: WcStatus;
  /** With REM_ABORT_ERR: the status of STOP or ABORT, 1 or 118 to 127 (IBTA 13.6.2.1). */
  readonly rmppStatus?: number;
  /** With GENERAL_ERR: the operating system's error. */
  readonly error?: SpiError;
}

export interface ReceivedMad {
  /** Valid while the handler runs. With RMPP: the headers of the first segment, then all data. */
  readonly data: Uint8Array;
  readonly source: MadAddress;
  /** The request that this responds to. */
  readonly request?: MadSendHandle;
}
