/** Two adapters on a simulated fabric that runs by itself, for streams of endpoints. */
import type { Observable, Subscription } from 'rxjs';
import { DatError } from '../../../core/errors/index.js';
import { type EndpointOptions, type Ep, type Ia, openIa, type Psp } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';

export const SERVER = '192.0.2.2';

export interface Pair {
  readonly client: Ep;
  readonly server: Ep;
}

export class Scene {
  private connQual = 7000;

  private constructor(
    readonly fabric: Fabric,
    readonly client: Ia,
    readonly server: Ia,
  ) {}

  static async open(): Promise<Scene> {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    const client = await openIa(mock({ fabric, address: '192.0.2.1' }));
    return new Scene(fabric, client, await openIa(mock({ fabric, address: SERVER })));
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.server.close()]);
  }

  listen(): Psp {
    return this.server.createPsp({ connQual: ++this.connQual });
  }

  endpoint(ia: Ia, options: Partial<EndpointOptions> = {}): Ep {
    return ia.createEndpoint({ pz: ia.createPz(), ...options });
  }

  /** Not connected yet. */
  pair(
    options: { client?: Partial<EndpointOptions>; server?: Partial<EndpointOptions> } = {},
  ): Pair {
    const client = this.endpoint(this.client, options.client);
    return { client, server: this.endpoint(this.server, options.server) };
  }

  async connect({ client, server }: Pair): Promise<void> {
    const psp = this.listen();
    psp.requests$.subscribe(({ cr }) => cr.accept(server));
    client.connect({ address: SERVER, connQual: psp.connQual });
    await until(() => client.state === 'CONNECTED' && server.state === 'CONNECTED');
    psp.free();
  }

  /** Sends texts, one after the other. */
  async send(ep: Ep, ...texts: readonly string[]): Promise<void> {
    const lmr = ep.ia.allocate(Math.max(1, texts.length) * 64, { pz: ep.pz });
    for (const [i, text] of texts.entries()) {
      const { written } = new TextEncoder().encodeInto(text, lmr.bytes.subarray(i * 64));
      await until(() => ep.requestsFree > 0);
      ep.postSend(lmr.segment(i * 64, written), 1000 + i);
    }
  }
}

export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Lets the fabric and all promises run. */
export async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Turns of the event loop until it holds; the bound of the test ends what hangs. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await turns(1);
}

/** What a stream does, in order: what it emits, its error's code, 'complete'. */
export function watch<T>(stream$: Observable<T>): { seen: unknown[]; subscription: Subscription } {
  const seen: unknown[] = [];
  const subscription = stream$.subscribe({
    next: (value) => seen.push(value),
    error: (error: unknown) => seen.push(DatError.isDatError(error) ? error.code : error),
    complete: () => seen.push('complete'),
  });
  return { seen, subscription };
}
