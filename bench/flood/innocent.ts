/** A client that has done nothing: messages there and back, and new connections. */
import { setTimeout as wait } from 'node:timers/promises';
import { DatDto, DatDtoStatus, type Ep, type Ia, type Lmr, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { CONN_QUAL, MESSAGE_BYTES } from './victim.js';

const CONNECT_EVERY_MS = 100;
/** Longer than any connect takes on a machine that has other things to do. */
const CONNECT_TIMEOUT_MS = 60_000;
/** A message that has not come back by then will not. */
const PATIENCE_MS = 60_000;

/** What a client notices. */
export interface Noticed {
  readonly pings: number;
  readonly slowestPingMs: number;
  readonly connects: number;
  readonly failedConnects: number;
  readonly slowestConnectMs: number;
  readonly isConnected: boolean;
  readonly retries: number;
}

export class Innocent {
  private readonly ep: Ep;
  private readonly outbox: Lmr;
  private onPong: () => void = () => undefined;

  static async open(local: string, remote: string, udpPort: number): Promise<Innocent> {
    const innocent = new Innocent(
      await openIa(softroce({ addresses: [local], udpPort, shm: false })),
      remote,
    );
    await innocent.connect(innocent.ep);
    return innocent;
  }

  private constructor(
    private readonly ia: Ia,
    private readonly remote: string,
  ) {
    const pz = ia.createPz();
    this.ep = ia.createEndpoint({ pz });
    const inbox = ia.allocate(MESSAGE_BYTES, { pz });
    this.outbox = ia.allocate(MESSAGE_BYTES, { pz });
    this.ep.postRecv(inbox.segment());
    this.ep.completions$.subscribe((event) => {
      if (event.type !== 'dto' || event.operation !== DatDto.RECEIVE) return;
      if (event.status !== DatDtoStatus.SUCCESS) return;
      this.ep.postRecv(inbox.segment());
      this.onPong();
    });
  }

  async notice(seconds: number): Promise<Noticed> {
    const before = this.retries;
    const endMs = performance.now() + 1000 * seconds;
    const [pings, connects] = await Promise.all([this.ping(endMs), this.connectAnew(endMs)]);
    const isConnected = this.ep.state === 'CONNECTED';
    return { ...pings, ...connects, isConnected, retries: this.retries - before };
  }

  close(): Promise<void> {
    return this.ia.close('abrupt');
  }

  private get retries(): number {
    return this.ia.deviceCounters()['retries'] ?? 0;
  }

  private async ping(endMs: number): Promise<Pick<Noticed, 'pings' | 'slowestPingMs'>> {
    let pings = 0;
    let slowestPingMs = 0;
    for (let now = performance.now(); now < endMs; pings++) {
      const pong = new Promise<void>((resolve) => (this.onPong = resolve));
      if (this.ep.state !== 'CONNECTED') break;
      this.ep.postSend(this.outbox.segment());
      const gaveUp = new AbortController();
      const patience = wait(PATIENCE_MS, 'late', { signal: gaveUp.signal }).catch(() => 'came');
      if ((await Promise.race([pong, patience])) === 'late') break;
      gaveUp.abort();
      slowestPingMs = Math.max(slowestPingMs, performance.now() - now);
      now = performance.now();
    }
    return { pings, slowestPingMs };
  }

  private async connectAnew(
    endMs: number,
  ): Promise<Pick<Noticed, 'connects' | 'failedConnects' | 'slowestConnectMs'>> {
    let connects = 0;
    let failedConnects = 0;
    let slowestConnectMs = 0;
    while (performance.now() < endMs) {
      const startMs = performance.now();
      const ep = this.ia.createEndpoint({ pz: this.ia.createPz() });
      await this.connect(ep).then(
        () => connects++,
        () => failedConnects++,
      );
      slowestConnectMs = Math.max(slowestConnectMs, performance.now() - startMs);
      await wait(CONNECT_EVERY_MS);
    }
    return { connects, failedConnects, slowestConnectMs };
  }

  private connect(ep: Ep): Promise<void> {
    return new Promise((resolve, reject) => {
      ep.connection$.subscribe(() => {
        if (ep.state === 'CONNECTED') resolve();
        else reject(new Error(`the connection is ${ep.state}`));
      });
      const timeoutMs = CONNECT_TIMEOUT_MS;
      ep.connect({ address: this.remote, connQual: CONN_QUAL, timeoutMs });
    });
  }
}
