/** The ways in which consumers take events: each must get every event once, and in order. */
import type { Cno, DatEvent, Evd, Ia } from '../../core/index.js';
import type { DatWorld, Taking } from './dat-endpoint.js';

const POLL_US = 100;
const SWITCH_US = 2000;
const QLEN = 256;

export class DatConsumer {
  readonly evd: Evd;
  private readonly cno: Cno | undefined;

  constructor(
    private readonly taking: Taking,
    ia: Ia,
    private readonly world: DatWorld,
    private readonly handler: (event: DatEvent) => void,
    private readonly alive: () => boolean,
  ) {
    const qlen = QLEN;
    this.cno = taking === 'cno' || taking === 'agent' ? ia.createCno() : undefined;
    if (taking === 'upcall' || taking === 'switching') {
      this.evd = ia.createEvd({ qlen, policy: 'ONE', handler });
    } else if (taking === 'many') {
      this.evd = ia.createEvd({ qlen, policy: 'MANY', handler, limit: 3 });
    } else if (taking === 'notify') {
      this.evd = ia.createEvd({ qlen, policy: 'NOTIFY', handler: () => this.drain() });
    } else this.evd = ia.createEvd({ qlen, ...(this.cno && { cno: this.cno }) });
  }

  start(): void {
    switch (this.taking) {
      case 'stream':
        this.evd.events$.subscribe(this.handler);
        break;
      case 'dequeue':
        this.every(POLL_US, () => this.drain());
        break;
      case 'batches':
        void this.iterate();
        break;
      case 'switching':
        this.every(SWITCH_US, () => this.switch());
        break;
      case 'cno':
        void this.await();
        break;
      case 'agent':
        this.watch();
        break;
      case 'upcall':
      case 'many':
      case 'notify':
      // The event dispatcher calls.
    }
  }

  free(): void {
    const keep = (error: unknown): void =>
      this.world.guard(() => {
        throw error;
      });
    const cno = this.cno;
    this.evd
      .free()
      .then(() => cno?.free(), keep)
      .catch(keep);
  }

  private drain(): void {
    for (let event = this.evd.dequeue(); event; event = this.evd.dequeue()) this.handler(event);
  }

  private every(meanUs: number, task: () => void): void {
    const { fabric, random } = this.world;
    fabric.clock.at(fabric.clock.now() + random.exponential(meanUs), () => {
      if (!this.alive()) return;
      this.world.guard(task);
      this.every(meanUs, task);
    });
  }

  private async iterate(): Promise<void> {
    for await (const batch of this.evd) for (const event of batch) this.handler(event);
  }

  /** Another policy each time; what waits meanwhile is handed over. */
  private switch(): void {
    const { evd, handler } = this;
    evd.modifyUpcall('DISABLE');
    const policy = this.world.random.pick(['ONE', 'MANY'] as const);
    evd.modifyUpcall(policy, handler, { pending: 'deliver' });
    this.world.mark('policies switched');
  }

  private async await(): Promise<void> {
    const cno = this.cno;
    if (!cno) return;
    for await (const evd of cno) if (evd === this.evd && this.alive()) this.drain();
  }

  /** An agent is called once: it drains, and installs itself again before it looks once more. */
  private watch(): void {
    const cno = this.cno;
    const agent = (): void => {
      if (!this.alive()) return;
      cno?.modifyAgent(agent);
      this.drain();
    };
    cno?.modifyAgent(agent);
  }
}
