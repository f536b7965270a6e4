/** A program with an adapter of its own, which it opens at first use. */
import { type Ia, openIa } from 'dapl';
import { provider } from '../compare/provider.js';

export class AdapterProgram {
  private ia: Ia | undefined;

  /** @param isShared also through shared memory */
  constructor(
    private readonly isShared: boolean,
    private readonly local: string,
    protected readonly remote: string,
  ) {}

  protected async open(): Promise<Ia> {
    const options = { addresses: [this.local], ...(!this.isShared && { shm: false }) };
    return (this.ia ??= await openIa(provider(options)));
  }

  counters(): Readonly<Record<string, number>> | undefined {
    return this.ia?.deviceCounters();
  }

  async close(): Promise<void> {
    await this.ia?.close('abrupt');
  }
}
