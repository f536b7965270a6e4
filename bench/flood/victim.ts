/** The server that is flooded: it accepts what is asked for, and sends each message back. */
import { type Cr, DatDto, DatDtoStatus, type Ia, openIa, type Pz } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

export const CONN_QUAL = 7700;
export const MESSAGE_BYTES = 64;

/** What the device has done in a while. */
export interface Work {
  /** How long that was. */
  readonly seconds: number;
  /** Of one core. */
  readonly cpuShare: number;
  readonly receivedPackets: number;
  /** Packets sent beside ACKs: messages, and what the CM has to say. */
  readonly sent: number;
  /** Of them, messages sent again: the client had no time to acknowledge them sooner. */
  readonly repeats: number;
  readonly droppedDatagrams: number;
}

export class Victim {
  private readonly pz: Pz;

  static async open(address: string, udpPort: number): Promise<Victim> {
    return new Victim(await openIa(softroce({ addresses: [address], udpPort, shm: false })));
  }

  private constructor(private readonly ia: Ia) {
    this.pz = ia.createPz();
    ia.createPsp({ connQual: CONN_QUAL }).requests$.subscribe(({ cr }) => {
      if (cr) this.serve(cr);
    });
  }

  /** Runs something and looks at what it has cost here. */
  async during<T>(run: () => Promise<T>): Promise<[T, Work]> {
    const startMs = performance.now();
    const cpu = process.cpuUsage();
    const before = this.ia.deviceCounters();
    const result = await run();
    const { user, system } = process.cpuUsage(cpu);
    const after = this.ia.deviceCounters();
    const count = (name: string): number => (after[name] ?? 0) - (before[name] ?? 0);
    const seconds = (performance.now() - startMs) / 1000;
    const work = {
      seconds,
      cpuShare: (user + system) / 1e6 / seconds,
      receivedPackets: count('receivedPackets'),
      sent: count('sentPackets') - count('acksSent'),
      repeats: count('earlyRepeats') + count('retries'),
      droppedDatagrams: count('droppedDatagrams'),
    };
    return [result, work];
  }

  close(): Promise<void> {
    return this.ia.close('abrupt');
  }

  private serve(cr: Cr): void {
    const { ia, pz } = this;
    const ep = ia.createEndpoint({ pz });
    const box = ia.allocate(MESSAGE_BYTES, { pz });
    ep.postRecv(box.segment());
    ep.completions$.subscribe((event) => {
      if (event.type !== 'dto' || event.operation !== DatDto.RECEIVE) return;
      if (event.status !== DatDtoStatus.SUCCESS) return;
      ep.postRecv(box.segment());
      ep.postSend(box.segment());
    });
    cr.accept(ep);
  }
}
