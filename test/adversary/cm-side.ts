/** One end of a connection that the CM has made: a message each way, then the end. */
import {
  type ConnectionEvent,
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type DtoCompletionEvent,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  type Pz,
} from '../../core/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { Violation } from '../sim/trace.js';
import { type Area, GuardedMemory } from './guarded-memory.js';

const MESSAGE_BYTES = 1500;
const RECEIVE_COOKIE = 1;
const SEND_COOKIE = 2;

export interface CmSideHost {
  readonly random: SeededRandom;
  /** Only then bytes must be right, and the end be asked for. */
  readonly spared: boolean;
  guard(handler: () => void): void;
  onEstablished(side: CmSide): void;
  onMessage(side: CmSide, bytes: Uint8Array): void;
  onEnd(side: CmSide, event: ConnectionEvent): void;
}

export class CmSide {
  readonly ep: Ep;
  readonly memory: GuardedMemory;
  established = false;
  end: ConnectionEvent | undefined;
  /** What it has sent. */
  sent: Uint8Array | undefined;
  private readonly areas: Readonly<Record<'source' | 'receive', Area>>;
  private readonly pz: Pz;
  private readonly evd: Evd;
  private readonly source: Lmr;
  private readonly receive: Lmr;
  /** Cookies of requests that have not ended. */
  private readonly outstanding = new Set<number>();
  private freed = false;

  constructor(
    readonly name: string,
    ia: Ia,
    private readonly host: CmSideHost,
  ) {
    const { random } = host;
    const lengths = { source: MESSAGE_BYTES, receive: MESSAGE_BYTES };
    const made = GuardedMemory.make(name, lengths, (_key, bytes) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = random.u32() >>> 24;
    });
    this.memory = made.memory;
    this.areas = made.areas;
    this.pz = ia.createPz();
    const pz = this.pz;
    this.source = ia.createLmr(this.bytes('source'), {
      pz,
      privileges: MemPrivileges.LOCAL_READ,
    });
    const privileges = MemPrivileges.LOCAL_WRITE;
    this.receive = ia.createLmr(this.bytes('receive'), { pz, privileges });
    this.evd = ia.createEvd({ qlen: 64 });
    const evds = { recvEvd: this.evd, requestEvd: this.evd, connectEvd: this.evd };
    const transport = { ackTimeout: 9, retryCount: 7, rnrRetryCount: 7, minRnrTimer: 4 };
    this.ep = ia.createEndpoint({ pz, ...evds, attributes: { transport } });
    this.evd.events$.subscribe((event) => host.guard(() => this.take(event)));
    this.memory.open(this.areas.receive, 'a receive is posted');
    this.outstanding.add(RECEIVE_COOKIE);
    this.ep.postRecv(this.receive.segment(), RECEIVE_COOKIE);
  }

  private bytes(key: 'source' | 'receive'): Uint8Array {
    const { start, length } = this.areas[key];
    return this.memory.bytes.subarray(start, start + length);
  }

  get connected(): boolean {
    return !this.freed && this.ep.state === 'CONNECTED';
  }

  send(): void {
    const length = this.host.random.between(1, MESSAGE_BYTES);
    this.sent = this.bytes('source').slice(0, length);
    this.outstanding.add(SEND_COOKIE);
    this.ep.postSend(this.source.segment(0, length), SEND_COOKIE);
  }

  disconnect(): void {
    if (this.connected) this.ep.disconnect(this.host.random.pick(['abrupt', 'graceful'] as const));
  }

  private take(event: DatEvent): void {
    if (this.freed) this.violate(`event ${event.type} after its end`);
    if (event.type === 'connection') this.takeConnection(event);
    else if (event.type === 'dto') this.takeDto(event);
    else this.violate(`unexpected event ${event.type}`);
  }

  private takeConnection(event: ConnectionEvent): void {
    const name = nameOf(DatEventNumber, event.number);
    if (this.end) this.violate(`${name} after the end`);
    if (event.number === DatEventNumber.ESTABLISHED) {
      if (this.established) this.violate(`${name} twice`);
      this.established = true;
      this.host.onEstablished(this);
      return;
    }
    this.end = event;
    if (this.established && this.outstanding.size > 0) {
      this.violate(`${name} before the end of requests ${[...this.outstanding].join(', ')}`);
    }
    this.host.onEnd(this, event);
  }

  private takeDto({ cookie, status, transferredLength }: DtoCompletionEvent): void {
    const what = `DTO ${cookie} ${nameOf(DatDtoStatus, status)}`;
    if (!this.outstanding.delete(Number(cookie))) this.violate(`${what}: not posted, or twice`);
    if (this.end && this.established) this.violate(`${what} after the end`);
    if (this.host.spared && status !== DatDtoStatus.SUCCESS && status !== DatDtoStatus.FLUSHED) {
      this.violate(`spared, and ${what}`);
    }
    if (cookie !== RECEIVE_COOKIE || status !== DatDtoStatus.SUCCESS) return;
    const message = this.bytes('receive').slice(0, transferredLength);
    this.memory.close(this.areas.receive.start);
    this.host.onMessage(this, message);
  }

  free(): void {
    if (this.freed) return;
    this.memory.verify('the end');
    this.freed = true;
    this.ep.free();
    this.source.free();
    this.receive.free();
    this.pz.free();
    this.memory.closeAll();
    const keep = (error: unknown): void =>
      this.host.guard(() => {
        throw error;
      });
    this.evd.free().catch(keep);
  }

  private violate(what: string): never {
    throw new Violation(`${this.name}: ${what}`);
  }
}
