/**
 * Connections made by the CM between two adapters, one after the other, and management requests
 * beside them. Of a pair that is spared every connection comes about, carries its messages and ends
 * when asked to; of the other one, each attempt ends in some way, whatever is made of its messages.
 */
import {
  type ConnectionEvent,
  DatEventNumber,
  type Ia,
  type ManagementAgent,
  nameOf,
} from '../../core/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { Violation } from '../sim/trace.js';
import { CmSide, type CmSideHost } from './cm-side.js';

export const VENDOR = { managementClass: 0x30, oui: 0x0d0a0b, rmpp: true } as const;

export interface CmLaneHost {
  readonly random: SeededRandom;
  readonly ending: boolean;
  after(us: number, task: () => void): void;
  guard(handler: () => void): void;
  note(line: string): void;
  mark(name: string): void;
}

const CONNECT_TIMEOUT_MS = 2000;
/** A side that has not ended by then ends itself; of a spared pair it must have. */
const LIFE_US = 400_000;
const PAUSE_US = 1_000;
/** Forged requests are accepted, too, so many at a time. */
const MAX_SERVERS = 40;
const MAX_TRANSFER_BYTES = 3000;
const TRANSFER = { timeoutMs: 50, retries: 5, attributeId: 1 } as const;

export class CmLane implements CmSideHost {
  readonly random: SeededRandom;
  readonly sides = new Set<CmSide>();
  /** Management requests without an answer. */
  asking = 0;
  private lives = 0;
  private client: CmSide | undefined;

  constructor(
    readonly name: string,
    readonly spared: boolean,
    private readonly from: { readonly ia: Ia; readonly agent: ManagementAgent },
    private readonly to: { readonly ia: Ia; readonly address: string },
    private readonly connQual: number,
    private readonly host: CmLaneHost,
  ) {
    this.random = host.random.fork();
    to.ia.createPsp({ connQual }).requests$.subscribe(({ cr }) => {
      this.guard(() => {
        const servers = [...this.sides].filter((side) => side !== this.client).length;
        if (servers >= MAX_SERVERS || host.ending) cr.reject();
        else cr.accept(this.side('server', to.ia).ep, { privateData: cr.privateData });
      });
    });
  }

  get idle(): boolean {
    return this.sides.size === 0 && this.asking === 0;
  }

  start(): void {
    if (this.host.ending) return;
    this.lives++;
    const client = (this.client = this.side('client', this.from.ia));
    const privateData = this.random.bytes(this.random.between(0, 56));
    const { address } = this.to;
    const { connQual } = this;
    client.ep.connect({ address, connQual, timeoutMs: CONNECT_TIMEOUT_MS, privateData });
    if (this.random.percent(20)) this.ask();
  }

  private side(role: string, ia: Ia): CmSide {
    const spared = this.spared ? ' spared' : '';
    const side = new CmSide(`${this.name}${spared} ${role} #${this.lives}`, ia, this);
    this.sides.add(side);
    this.host.after(LIFE_US, () => this.expire(side));
    return side;
  }

  /** A side whose peer is gone without a word; one that is not connected yet has its own limit. */
  private expire(side: CmSide): void {
    if (!this.sides.has(side)) return;
    if (this.spared) throw new Violation(`${side.name}: not over in ${LIFE_US} us`);
    side.disconnect();
    this.host.after(LIFE_US, () => this.expire(side));
  }

  private ask(): void {
    const data = this.random.bytes(this.random.below(MAX_TRANSFER_BYTES));
    this.asking++;
    const what = `${this.name}: a request of ${data.length} bytes`;
    this.from.agent.request({ ...TRANSFER, address: this.to.address, data }).then(
      (answer) => {
        this.asking--;
        const right = Buffer.compare(answer.data, data.slice().reverse()) === 0;
        this.host.mark(right ? 'MADs answered' : 'MADs answered otherwise');
        if (this.spared && !right) this.fail(`${what}: spared, and other bytes came back`);
      },
      (error: unknown) => {
        this.asking--;
        this.host.mark('MADs not answered');
        if (this.spared) this.fail(`${what}: spared, and ${String(error)}`);
      },
    );
  }

  private fail(what: string): void {
    this.guard(() => {
      throw new Violation(what);
    });
  }

  // --- CmSideHost -------------------------------------------------------------------------------

  guard(handler: () => void): void {
    this.host.guard(handler);
  }

  onEstablished(side: CmSide): void {
    if (side === this.client) side.send();
  }

  /** The server sends what it has; the client then has had enough. */
  onMessage(side: CmSide, bytes: Uint8Array): void {
    const peer = [...this.sides].find((each) => each !== side);
    if (this.spared && Buffer.compare(bytes, peer?.sent ?? new Uint8Array(0)) !== 0) {
      throw new Violation(`${side.name}: spared, and received other bytes`);
    }
    if (!side.established) return;
    if (side === this.client) side.disconnect();
    else if (side.connected) side.send();
  }

  onEnd(side: CmSide, event: ConnectionEvent): void {
    const name = nameOf(DatEventNumber, event.number);
    this.host.mark(`CM ${name}`);
    const good = side.established && event.number === DatEventNumber.DISCONNECTED;
    if (this.spared && !good && !this.host.ending) {
      throw new Violation(`${side.name}: spared, and ${name}`);
    }
    side.free();
    this.sides.delete(side);
    if (side === this.client)
      this.host.after(this.random.exponential(PAUSE_US), () => this.start());
  }

  verify(what: string): void {
    for (const { memory } of this.sides) memory.verify(what);
  }
}
