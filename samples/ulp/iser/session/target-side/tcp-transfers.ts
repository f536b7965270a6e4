/**
 * Moves the data of commands over TCP for a target: Data-In in sequences, and R2T answered by
 * Data-Out (RFC 7143, 11.7 and 11.8). iSER uses neither.
 */
import { BHS_BYTES, dataIn, type InitiatorPdu, r2t, REJECT_REASON } from '../../wire/index.js';
import type { TaskSignal } from './command-abort.js';
import type { Header, SequenceNumbers, TransferTask } from './datamover.js';
import type { SetAlarm } from './keep-alive.js';
import type { Negotiated } from './login/operational.js';
import { ProtocolFault } from './protocol-fault.js';
import { StallWatch } from './stall-watch.js';

type DataOutPdu = Extract<InitiatorPdu, { type: 'dataOut' }>;

export interface TransferParts {
  readonly negotiated: Negotiated;
  readonly numbers: SequenceNumbers;
  /**
   * Sends a PDU; `sent` is called when `data` may be reused, or with the reason that it is never
   * sent.
   */
  readonly send: (header: Header, data: Uint8Array, sent?: (error?: Error | null) => void) => void;
  readonly alarm: SetAlarm;
  /** Milliseconds without progress in one direction after which `stalled` is called. */
  readonly timeoutMs: number;
  readonly stalled: () => void;
}

/** Data-in that waits until some of the earlier data was sent. */
interface Turn {
  readonly move: () => void;
  readonly fail: (why: Error) => void;
}

/** Numbers of the next PDUs of a command. */
interface Counters {
  dataSn: number;
  r2tSn: number;
}

/** A burst that an R2T has requested. */
interface Burst {
  readonly task: TransferTask;
  /** Undefined once nothing waits for it: arriving data is dropped. */
  into: Uint8Array | undefined;
  readonly offset: number;
  readonly lengthBytes: number;
  receivedBytes: number;
  dataSn: number;
  readonly complete: () => void;
  readonly fail: (why: Error) => void;
}

const NO_DATA = new Uint8Array(0);
const HIGHEST_TAG = 0x7fff_ffff;
/** Data-in passed to the socket at a time; only then can progress be seen. */
const SEND_AHEAD_BYTES = 256 * 1024;

export class TcpTransfers {
  private readonly counters = new WeakMap<TransferTask, Counters>();
  private readonly bursts = new Map<number, Burst>();
  private sendDataSegmentLength: number;
  private lastTag = 0;
  private unsentBytes = 0;
  private readonly turns: Turn[] = [];
  private readonly incoming: StallWatch;
  private readonly outgoing: StallWatch;

  constructor(private readonly parts: TransferParts) {
    const { alarm, timeoutMs, stalled } = parts;
    const watch = (isPending: () => boolean): StallWatch =>
      new StallWatch({ alarm, timeoutMs, isPending, stalled });
    this.incoming = watch(() => this.hasOpenBurst());
    this.outgoing = watch(() => this.unsentBytes > 0);
    this.sendDataSegmentLength = parts.negotiated.sendDataSegmentLength;
  }

  limitSegments(sendDataSegmentLength: number): void {
    this.sendDataSegmentLength = sendDataSegmentLength;
  }

  async putData(task: TransferTask, offset: number, from: Uint8Array): Promise<void> {
    if (from.length === 0) return;
    await new Promise<void>((resolve, fail) => {
      const allSent = (error?: Error | null): void => {
        this.unsentBytes -= from.length;
        this.outgoing.moved();
        if (error) fail(error);
        else resolve();
        this.nextTurns();
      };
      const move = (): void => {
        if (task.signal.aborted) return fail(abortedBy(task.signal));
        this.outgoing.begin();
        this.unsentBytes += from.length;
        this.sendData(task, offset, from, allSent);
      };
      if (this.unsentBytes < SEND_AHEAD_BYTES && this.turns.length === 0) move();
      else this.turns.push({ move, fail });
    });
  }

  async getData(task: TransferTask, offset: number, into: Uint8Array): Promise<void> {
    const { maxBurstLength } = this.parts.negotiated;
    for (let at = 0; at < into.length; at += maxBurstLength) {
      await this.fetch(task, offset + at, into.subarray(at, at + maxBurstLength));
    }
  }

  /** Handles a Data-Out. @throws ProtocolFault if it was not requested, or not in this form */
  dataOut({ header, data }: DataOutPdu): void {
    const { targetTransferTag, initiatorTaskTag, bufferOffset, dataSn, final } = header;
    const burst = this.bursts.get(targetTransferTag);
    if (burst === undefined) throw fault(`transfer tag ${targetTransferTag} was not given`);
    this.incoming.moved();
    const { task, receivedBytes, lengthBytes } = burst;
    check('InitiatorTaskTag', initiatorTaskTag, task.initiatorTaskTag);
    check('DataSN', dataSn, burst.dataSn);
    check('BufferOffset', bufferOffset, burst.offset + receivedBytes);
    const missing = lengthBytes - receivedBytes;
    if (data.length > missing || (data.length === 0 && missing > 0)) {
      throw fault(`Data-Out has ${data.length} bytes, must have 1 to ${missing}`);
    }
    burst.into?.set(data, receivedBytes);
    burst.receivedBytes += data.length;
    burst.dataSn++;
    const isComplete = burst.receivedBytes === lengthBytes;
    if (final !== isComplete) {
      throw fault(`F is ${final} with ${burst.receivedBytes} of ${lengthBytes} bytes`);
    }
    if (!isComplete) return;
    this.bursts.delete(targetTransferTag);
    burst.complete();
  }

  /** The connection has ended. */
  end(why: Error): void {
    for (const burst of this.bursts.values()) burst.fail(why);
    this.bursts.clear();
    for (const { fail } of this.turns.splice(0)) fail(why);
    this.incoming.stop();
    this.outgoing.stop();
  }

  private nextTurns(): void {
    while (this.unsentBytes < SEND_AHEAD_BYTES) {
      const next = this.turns.shift();
      if (next === undefined) return;
      next.move();
    }
  }

  private sendData(
    task: TransferTask,
    offset: number,
    from: Uint8Array,
    allSent: (error?: Error | null) => void,
  ): void {
    const { maxBurstLength } = this.parts.negotiated;
    for (let at = 0; at < from.length;) {
      const burstEnd = Math.min(at - (at % maxBurstLength) + maxBurstLength, from.length);
      const end = Math.min(at + this.sendDataSegmentLength, burstEnd);
      const header = this.dataInHeader(task, offset + at, end - at, end === burstEnd);
      // What is sent last tells of all.
      this.parts.send(header, from.subarray(at, end), end === from.length ? allSent : undefined);
      at = end;
    }
  }

  /**
   * True if a burst is open. Bursts of aborted tasks do not count: the initiator need not answer
   * them.
   */
  private hasOpenBurst(): boolean {
    for (const { into } of this.bursts.values()) if (into !== undefined) return true;
    return false;
  }

  private dataInHeader(
    task: TransferTask,
    bufferOffset: number,
    dataSegmentLength: number,
    final: boolean,
  ): Header {
    const { expCmdSn, maxCmdSn } = this.parts.numbers;
    const header = new Uint8Array(BHS_BYTES);
    const { initiatorTaskTag } = task;
    const numbers = { expCmdSn, maxCmdSn, dataSn: this.countersOf(task).dataSn++ };
    const place = { bufferOffset, dataSegmentLength, final };
    dataIn.emit({ initiatorTaskTag, ...numbers, ...place }, header);
    return header;
  }

  private fetch(task: TransferTask, offset: number, into: Uint8Array): Promise<void> {
    const { signal } = task;
    if (signal.aborted) return Promise.reject(abortedBy(signal));
    const targetTransferTag = this.nextTag();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => burst.fail(abortedBy(signal));
      const burst: Burst = {
        ...{ task, into, offset, lengthBytes: into.length, receivedBytes: 0, dataSn: 0 },
        complete: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
        fail: (why) => {
          signal.removeEventListener('abort', onAbort);
          burst.into = undefined;
          reject(why);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.incoming.begin();
      this.bursts.set(targetTransferTag, burst);
      this.sendR2t(burst, targetTransferTag);
    });
  }

  private sendR2t({ task, offset, lengthBytes }: Burst, targetTransferTag: number): void {
    const { statSn, expCmdSn, maxCmdSn } = this.parts.numbers;
    const header = new Uint8Array(BHS_BYTES);
    r2t.emit(
      {
        ...{ initiatorTaskTag: task.initiatorTaskTag, lun: task.lun, targetTransferTag },
        ...{ statSn, expCmdSn, maxCmdSn, r2tSn: this.countersOf(task).r2tSn++ },
        ...{ bufferOffset: offset, desiredDataTransferLength: lengthBytes },
      },
      header,
    );
    this.parts.send(header, NO_DATA);
  }

  private countersOf(task: TransferTask): Counters {
    const known = this.counters.get(task);
    if (known !== undefined) return known;
    const counters = { dataSn: 0, r2tSn: 0 };
    this.counters.set(task, counters);
    return counters;
  }

  private nextTag(): number {
    do this.lastTag = (this.lastTag % HIGHEST_TAG) + 1;
    while (this.bursts.has(this.lastTag));
    return this.lastTag;
  }
}

function abortedBy({ reason }: TaskSignal): Error {
  return reason ?? new Error('the task was aborted');
}

function check(name: string, value: number, expected: number): void {
  if (value !== expected) throw fault(`${name} of Data-Out is ${value}, must be ${expected}`);
}

function fault(why: string): ProtocolFault {
  return new ProtocolFault(REJECT_REASON.PROTOCOL_ERROR, why, 'ends');
}
