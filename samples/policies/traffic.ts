/** A connection whose messages complete on the event dispatcher under discussion. */
import { type DatEvent, type Ep, type Evd, EvdFlags, type Ia, type Lmr } from 'dapl';
import { accepting, completionOf, connected } from 'dapl/rx';
import { firstValueFrom } from 'rxjs';

/** Number of receives: more than any point needs. */
const RECEIVES = 32;
const MESSAGE_BYTES = 64;

/** The two adapters, and the trace of the receiving one. */
export interface Adapters {
  readonly sender: Ia;
  readonly receiver: Ia;
  readonly trace: readonly string[];
}

export class Traffic {
  private sent = 0;

  private constructor(
    readonly adapters: Adapters,
    /** Completions of the receives of `receiver`: the cookies are 0, 1, 2 and so on. */
    readonly evd: Evd,
    readonly sender: Ep,
    readonly receiver: Ep,
    private readonly outbox: Lmr,
  ) {}

  static async open(adapters: Adapters, connQual: number): Promise<Traffic> {
    const { sender: from, receiver: to } = adapters;
    const evd = to.createEvd({ qlen: 2 * RECEIVES, streams: EvdFlags.DTO });
    const pz = to.createPz();
    const inbox = to.allocate(RECEIVES * MESSAGE_BYTES, { pz });
    const prepare = (ep: Ep): void => {
      for (let i = 0; i < RECEIVES; i++) {
        ep.postRecv(inbox.segment(i * MESSAGE_BYTES, MESSAGE_BYTES), i);
      }
    };
    using psp = to.createPsp({ connQual });
    const accepted = firstValueFrom(accepting(psp, { endpoint: { pz, recvEvd: evd }, prepare }));
    const sender = from.createEndpoint({ pz: from.createPz() });
    sender.connect({ address: to.address, connQual });
    await firstValueFrom(connected(sender));
    const outbox = from.allocate(MESSAGE_BYTES, { pz: sender.pz });
    return new Traffic(adapters, evd, sender, await accepted, outbox);
  }

  /** Sends messages; resolves when the peer's device has them. */
  async arrive(count: number): Promise<void> {
    const cookies = Array.from({ length: count }, () => this.sent++);
    for (const cookie of cookies) this.sender.postSend(this.outbox.segment(), cookie);
    const { sender } = this;
    await Promise.all(cookies.map((cookie) => firstValueFrom(completionOf(sender, cookie))));
  }

  /** Number of pending events. */
  get waiting(): number {
    return this.evd.query().pending;
  }

  /** Takes all pending events by polling, as a consumer does in a context of its own. */
  drain(): number[] {
    const numbers: number[] = [];
    for (let event = this.evd.dequeue(); event; event = this.evd.dequeue()) {
      numbers.push(numberOf(event));
    }
    return numbers;
  }

  async close(): Promise<void> {
    this.sender.free();
    this.receiver.free();
    await this.evd.free();
  }
}

/** The number of the message that has completed. */
export function numberOf(event: DatEvent): number {
  return event.type === 'dto' ? event.cookie : NaN;
}

/** Two turns of the event loop: stands for work that takes a while. */
export async function aWhile(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}
