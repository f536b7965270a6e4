/** A device's container without tsyringe: each factory runs once, when first resolved. */
import { LOGGER, SpiError, silentLogger } from '../../../core/spi/index.js';
import type { Registrar, Resolver, Token } from '../../../core/spi/index.js';
import { mock } from '../../../providers/mock/index.js';
import type { MockOptions } from '../../../providers/mock/index.js';

export class Container implements Registrar, Resolver {
  readonly #factories = new Map<symbol, (resolver: Resolver) => unknown>();
  readonly #made = new Map<symbol, unknown>();

  bind<T>(token: Token<T>, factory: (resolver: Resolver) => T): void {
    this.#factories.set(token, factory);
  }

  has(token: Token<unknown>): boolean {
    return this.#factories.has(token);
  }

  resolve<T>(token: Token<T>): T {
    const factory = this.#factories.get(token);
    if (!factory) throw new SpiError('ENODEV', `nothing is bound to ${String(token)}`);
    if (!this.#made.has(token)) this.#made.set(token, factory(this));
    return this.#made.get(token) as T;
  }
}

/** Opens a mock device. */
export async function openMock(options: MockOptions): Promise<Container> {
  const container = new Container();
  container.bind(LOGGER, () => silentLogger);
  await mock(options).instance.open(container, container);
  return container;
}
