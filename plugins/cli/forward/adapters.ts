/** The adapters of a forwarder's endpoints: one for each local address. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Ia, localAddressToward, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';

export const PROVIDERS = ['softroce', 'verbs'] as const;
export type ProviderName = (typeof PROVIDERS)[number];

export class Adapters {
  private readonly opened = new Map<string, Promise<Ia>>();

  /** @param from local address toward all peers; undefined to use the routing table */
  constructor(
    private readonly provider: ProviderName,
    private readonly from: string | undefined,
  ) {}

  /** The adapter of a local address. @throws DatError, an error of the resolver */
  async on(host: string): Promise<Ia> {
    const address = await addressOf(host);
    let ia = this.opened.get(address);
    if (ia === undefined) {
      ia = openIa(
        this.provider === 'verbs' ? verbs({ address }) : softroce({ addresses: [address] }),
      );
      this.opened.set(address, ia);
    }
    return ia;
  }

  /** The adapter that reaches a peer. @throws DatError, an error of the resolver */
  async toward(host: string): Promise<Ia> {
    if (this.from !== undefined) return this.on(this.from);
    return this.on(await localAddressToward(await addressOf(host)));
  }

  async close(): Promise<void> {
    for (const opening of this.opened.values()) {
      const ia = await opening.catch(() => undefined);
      await ia?.close('abrupt');
    }
  }
}

async function addressOf(host: string): Promise<string> {
  return isIP(host) === 0 ? (await lookup(host)).address : host;
}
