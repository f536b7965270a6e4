/** A program of DAT: endpoints whose completions are a stream, `ep.completions$`. */
import { DatDto, DatDtoStatus, type Ep, type Ia, type LmrSegment } from 'dapl';
import { established } from '../compare/connection.js';
import { AdapterProgram } from './adapter.js';
import { Inbox, type Job, type Link, type Program } from './link.js';

const CONN_QUAL = 7600;
/** Receives that a side keeps posted, and sends it has memory for. */
const SLOTS = 128;
const CONNECT_TIMEOUT_MS = 30_000;

class DatLink implements Link {
  readonly ep: Ep;
  private readonly inbox = new Inbox();
  private readonly slots: readonly LmrSegment[];
  private readonly memory: Uint8Array;
  private readonly bytes: number;
  private readonly sent: (() => void)[] = [];
  private next = 0;

  constructor(ia: Ia, { bytes }: Job) {
    this.bytes = bytes;
    const pz = ia.createPz();
    this.ep = ia.createEndpoint({
      pz,
      attributes: { maxRecvDtos: SLOTS, maxRequestDtos: SLOTS },
    });
    const memory = ia.allocate(2 * SLOTS * bytes, { pz });
    this.memory = memory.bytes;
    this.slots = Array.from({ length: 2 * SLOTS }, (_, i) => memory.segment(i * bytes, bytes));
    for (let i = 0; i < SLOTS; i++) this.ep.postRecv(this.slots[i]!, i);
    this.ep.completions$.subscribe((event) => {
      if (event.type !== 'dto') return;
      if (event.status !== DatDtoStatus.SUCCESS) this.inbox.end();
      else if (event.operation !== DatDto.RECEIVE) this.sent.shift()?.();
      else {
        const at = event.cookie * bytes;
        this.inbox.push(this.memory.slice(at, at + event.transferredLength));
        this.ep.postRecv(this.slots[event.cookie]!, event.cookie);
      }
    });
  }

  send(message: Uint8Array): Promise<void> {
    const slot = SLOTS + (this.next++ % SLOTS);
    this.memory.set(message, slot * this.bytes);
    this.ep.postSend(this.slots[slot]!, slot);
    return new Promise((resolve) => this.sent.push(resolve));
  }

  receive(): Promise<Uint8Array> {
    return this.inbox.receive();
  }

  close(): Promise<void> {
    if (this.ep.state === 'CONNECTED') this.ep.disconnect('graceful');
    return Promise.resolve();
  }
}

export class DatProgram extends AdapterProgram implements Program {
  async listen(job: Job, take: (link: Link) => void): Promise<number> {
    const ia = await this.open();
    ia.createPsp({ connQual: CONN_QUAL }).requests$.subscribe(({ cr }) => {
      const link = new DatLink(ia, job);
      cr?.accept(link.ep);
      take(link);
    });
    return CONN_QUAL;
  }

  async connect(job: Job, port: number): Promise<Link> {
    const link = new DatLink(await this.open(), job);
    const done = established(link.ep);
    link.ep.connect({ address: this.remote, connQual: port, timeoutMs: CONNECT_TIMEOUT_MS });
    await done;
    return link;
  }
}
