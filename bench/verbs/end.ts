/** One side of a cell over the DAT API, whatever the provider: perftest's loops, in TypeScript. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  EventBatch,
  type Evd,
  type Ia,
  type Lmr,
  type LmrSegment,
  MemPrivileges,
  nameOf,
  type Pz,
} from 'dapl';
import type { Target, Work } from './workload.js';

const BATCH = 256;
/** Turns of a spin loop between two turns of the event loop. */
const SPIN_TURNS = 256;
const PATIENCE_MS = 60_000;
const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;

/** An endpoint, its memory and the one EVD of its completions. */
export class End {
  readonly ep: Ep;
  /** What is sent, or written from: one message, as perftest has it. */
  readonly source: LmrSegment;
  /** What is received, or written into. */
  readonly sink: LmrSegment;
  private readonly memory: Lmr;
  private readonly pz: Pz;
  private readonly evd: Evd;
  private readonly batch = new EventBatch(BATCH);
  private failure: string | undefined;
  private stopped = false;

  constructor(
    ia: Ia,
    readonly work: Work,
  ) {
    const { bytes, depth, reads, test } = work;
    const receives = test === 'ib_send_lat' ? 2 : 1;
    this.pz = ia.createPz();
    const privileges = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE;
    this.memory = ia.allocate(2 * bytes, { pz: this.pz, privileges });
    this.source = this.memory.segment(0, bytes);
    this.sink = this.memory.segment(bytes, bytes);
    // perftest sleeps in ib_send_lat -e alone; its other loops look without sleeping.
    const polling = test === 'ib_send_lat' ? 'event' : 'spin';
    this.evd = ia.createEvd({ qlen: receives + depth + 1, polling });
    this.ep = ia.createEndpoint({
      pz: this.pz,
      recvEvd: this.evd,
      requestEvd: this.evd,
      attributes: {
        maxRecvDtos: receives,
        maxRequestDtos: depth + 1,
        maxRdmaReadIn: reads,
        maxRdmaReadOut: reads,
      },
    });
    if (test === 'ib_send_lat') this.postReceive();
  }

  /** What the peer has to know of the memory that it may reach. */
  target(port: number): Target {
    const address = (this.memory.address + BigInt(this.work.bytes)).toString(16);
    return { port, address, rmrContext: this.memory.rmrContext ?? 0 };
  }

  /** Resolves when the connection is there. */
  established(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.ep.connection$.subscribe(({ number, reason = '' }) => {
        if (number === DatEventNumber.ESTABLISHED) resolve();
        this.failure ??= `the connection: ${nameOf(DatEventNumber, number)} ${reason}`;
        if (number !== DatEventNumber.ESTABLISHED) reject(new Error(this.failure));
        else this.failure = undefined;
      });
    });
  }

  postReceive(): void {
    this.ep.postRecv(this.sink, 0);
  }

  /** Takes what has completed. Returns the batch; its `count` is 0 when there was nothing. */
  poll(): EventBatch {
    const { batch } = this;
    this.evd.dequeueInto(batch);
    for (let i = 0; i < batch.count; i++) {
      const status = batch.statuses[i]!;
      if (status !== DatDtoStatus.SUCCESS) this.fail(`a request: ${nameOf(DatDtoStatus, status)}`);
    }
    return batch;
  }

  /** Calls `turn` without sleeping until it says that it is done, or the end is stopped. */
  async spin(turn: () => boolean): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS;
    for (;;) {
      for (let i = 0; i < SPIN_TURNS; i++) if (this.stopped || turn()) return;
      if (performance.now() > endMs) this.fail('no progress in a minute');
      await nextTurn();
    }
  }

  /** Calls `turn` whenever completions have come, until it says that it is done. */
  onCompletions(turn: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.stop = () => {
        this.stopped = true;
        resolve();
      };
      this.evd.modifyUpcall('NOTIFY', () => {
        try {
          if (this.stopped || turn()) resolve();
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }

  /** Ends a loop that has no end of its own: the answering side's. */
  stop = (): void => {
    this.stopped = true;
  };

  async free(): Promise<void> {
    this.stop();
    await this.evd.modifyUpcall('TEARDOWN');
    if (this.ep.state === 'CONNECTED') this.ep.disconnect('abrupt');
    this.ep.free();
    await this.evd.free();
    this.memory.free();
    this.pz.free();
  }

  private fail(why: string): void {
    if (!this.stopped) throw new Error(this.failure ?? why);
  }
}
