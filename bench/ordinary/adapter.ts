/** The adapter of a program that opens one itself, when it is wanted. */
import { type Ia, openIa } from 'dapl';
import { provider } from '../compare/provider.js';

export class OwnAdapter {
  private ia: Ia | undefined;

  /** @param isShared through shared memory, too */
  constructor(
    private readonly isShared: boolean,
    private readonly local: string,
  ) {}

  async open(): Promise<Ia> {
    const options = { addresses: [this.local], ...(!this.isShared && { shm: false }) };
    this.ia ??= await openIa(provider(options));
    return this.ia;
  }

  counters(): Readonly<Record<string, number>> | undefined {
    return this.ia?.deviceCounters();
  }

  async close(): Promise<void> {
    await this.ia?.close('abrupt');
  }
}
