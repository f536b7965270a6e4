/** Our endpoints of one cell with their memory and the one EVD of their completions. */
import {
  type DatEvent,
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  EventBatch,
  type Evd,
  type Ia,
  type Lmr,
  type LmrSegment,
  MemPrivileges,
  type Pz,
  nameOf,
} from 'dapl';
import { type Cell, isStream } from './cells.js';
import { spinUntil } from './end.js';

const BATCH = 256;
/** Requests of a ping, which are suppressed: half as many in a row have no completion. */
const PING_REQUESTS = 32;
const PRIVILEGES =
  MemPrivileges.LOCAL_READ |
  MemPrivileges.LOCAL_WRITE |
  MemPrivileges.REMOTE_READ |
  MemPrivileges.REMOTE_WRITE;

/** A successful completion: what it was, and the slot that it was posted with. */
export type Take = (operation: number, slot: number) => void;

/** Endpoints take turns, but do not advance alike: one may have several rounds outstanding. */
function streamRequests({ depth }: Cell, slotsPerEp: number): number {
  return Math.min(16 * slotsPerEp, Math.max(2 * slotsPerEp, depth));
}

export class Connection {
  readonly eps: readonly Ep[];
  readonly memory: Lmr;
  /** A message each. */
  readonly segments: readonly LmrSegment[];
  over = false;
  private readonly pz: Pz;
  private readonly evd: Evd;
  private readonly batch = new EventBatch(BATCH);
  private end: () => void = () => undefined;

  /**
   * @param slotsPerEp messages that each endpoint has memory for
   * @param receives of them posted as receives
   */
  constructor(
    ia: Ia,
    readonly cell: Cell,
    private readonly slotsPerEp: number,
    receives: number,
  ) {
    const { bytes, endpoints, polling, mtuBytes } = cell;
    const slots = endpoints * slotsPerEp;
    this.pz = ia.createPz();
    this.memory = ia.allocate(slots * bytes, { pz: this.pz, privileges: PRIVILEGES });
    // Every page is touched: one that never was is shared, and quicker to read than any other.
    this.memory.bytes.fill(1);
    this.segments = Array.from({ length: slots }, (_, i) => this.memory.segment(i * bytes, bytes));
    this.evd = ia.createEvd({ qlen: 2 * slots + 2 * cell.depth, polling });
    this.eps = Array.from({ length: endpoints }, () =>
      ia.createEndpoint({
        pz: this.pz,
        recvEvd: this.evd,
        requestEvd: this.evd,
        attributes: {
          maxRecvDtos: slotsPerEp,
          maxRequestDtos: isStream(cell) ? streamRequests(cell, slotsPerEp) : PING_REQUESTS,
          ...(mtuBytes > 0 && { transport: { pathMtuBytes: mtuBytes } }),
        },
      }),
    );
    for (let slot = 0; slot < slots; slot++) {
      if (slot % slotsPerEp < receives) this.postRecv(slot);
    }
  }

  /** The endpoint that a slot belongs to. */
  epOf(slot: number): Ep {
    return this.eps[Math.floor(slot / this.slotsPerEp)]!;
  }

  postRecv(slot: number): void {
    this.epOf(slot).postRecv(this.segments[slot]!, slot);
  }

  /** Doorbells of the one endpoint are rung once for all that `work` posts. */
  burst(work: () => void): void {
    if (this.eps.length === 1) this.eps[0]!.burst(work);
    else work();
  }

  /** Shows every completion to `take`, the way the cell says, until `stop`. */
  consume(take: Take): Promise<void> {
    const { batch, evd } = this;
    const each = (): void => {
      for (let i = 0; i < batch.count; i++) {
        this.check(batch.statuses[i]!, batch.operations[i]!, batch.cookies[i]!, take);
      }
    };
    const turn = (): void => {
      if (evd.dequeueInto(batch) > 0) this.burst(each);
    };
    const show = (event: DatEvent): void => {
      if (event.type === 'dto') this.check(event.status, event.operation, event.cookie, take);
    };
    const { delivery } = this.cell;
    if (delivery === 'dequeue') return spinUntil(() => this.over, turn);
    if (delivery === 'upcall') evd.modifyUpcall('NOTIFY', turn);
    else if (delivery === 'events$') evd.events$.subscribe(show);
    else this.iterate(show).catch((error: unknown) => complain(String(error)));
    return new Promise((resolve) => (this.end = resolve));
  }

  /** Takes completions off the EVD, of those who look elsewhere for what has arrived. */
  looker(): () => void {
    return () => {
      const { batch } = this;
      this.evd.dequeueInto(batch);
      for (let i = 0; i < batch.count; i++) {
        this.check(batch.statuses[i]!, batch.operations[i]!, batch.cookies[i]!, () => undefined);
      }
    };
  }

  stop(): void {
    this.over = true;
    this.end();
  }

  async free(): Promise<void> {
    await this.evd.modifyUpcall('TEARDOWN');
    for (const ep of this.eps) {
      if (ep.state === 'CONNECTED') ep.disconnect('abrupt');
      ep.free();
    }
    await this.evd.free();
    this.memory.free();
    this.pz.free();
  }

  private async iterate(show: (event: DatEvent) => void): Promise<void> {
    for await (const events of this.evd) {
      for (const event of events) show(event);
    }
  }

  private check(status: number, operation: number, slot: number, take: Take): void {
    if (status === DatDtoStatus.SUCCESS) take(operation, slot);
    else if (!this.over) {
      if (status !== DatDtoStatus.FLUSHED) {
        complain(`${nameOf(DatDto, operation)} failed: ${nameOf(DatDtoStatus, status)}`);
      }
      this.stop();
    }
  }
}

/** Resolves when the connection of an endpoint stands. */
export function established(ep: Ep): Promise<void> {
  return new Promise((resolve, reject) => {
    ep.connection$.subscribe((event) => {
      const { number } = event;
      if (number === DatEventNumber.ESTABLISHED) resolve();
      else reject(new Error(`the connection: ${nameOf(DatEventNumber, number)}`));
    });
  });
}

function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}
