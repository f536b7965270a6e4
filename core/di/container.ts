/**
 * The container of a device, and of each interface adapter on it. Plugins see only the narrow
 * Registrar and Resolver of the SPI, so a second copy of tsyringe in an application cannot matter.
 */
import 'reflect-metadata';
import { container as root, type DependencyContainer, instanceCachingFactory } from 'tsyringe';
import { LOGGER, type Logger, type Registrar, type Resolver, SpiError } from '../spi/index.js';
import type { Token } from '../spi/index.js';
import { DeviceServices } from './device-services.js';

/** A binding of the application's own that stands in place of the provider's. */
export interface Override {
  readonly token: Token<unknown>;
  readonly factory: (resolver: Resolver) => unknown;
}

/** One device's container. */
export class DeviceContainer implements Registrar {
  private readonly container: DependencyContainer;
  private readonly fixed = new Set<symbol>();
  private readonly made = new Set<symbol>();
  readonly resolver: Resolver;

  /** @param overrides bindings that win over what the provider binds */
  constructor(logger: Logger, overrides: readonly Override[]) {
    this.container = root.createChildContainer();
    this.resolver = resolverOf(this.container);
    this.register(LOGGER, () => logger);
    for (const { token, factory } of overrides) this.register(token, factory);
    for (const { token } of overrides) this.fixed.add(token);
  }

  bind<T>(token: Token<T>, factory: (resolver: Resolver) => T): void {
    if (!this.fixed.has(token)) this.register(token, factory);
  }

  /**
   * Whether something was bound to the token and has been made: only then is there an end to it.
   */
  isMade(token: Token<unknown>): boolean {
    return this.made.has(token);
  }

  /** What core uses of the device, with a logger of the interface adapter's own. */
  servicesFor(logger: Logger): DeviceServices {
    const child = this.container.createChildContainer();
    child.register(LOGGER, { useValue: logger });
    return child.resolve(DeviceServices);
  }

  private register<T>(token: Token<T>, factory: (resolver: Resolver) => T): void {
    const once = instanceCachingFactory(() => {
      const instance = factory(this.resolver);
      this.made.add(token);
      return instance;
    });
    this.container.register(token, { useFactory: once });
  }
}

function resolverOf(container: DependencyContainer): Resolver {
  const has = (token: Token<unknown>): boolean => container.isRegistered(token, true);
  return {
    has,
    resolve<T>(token: Token<T>): T {
      if (has(token)) return container.resolve<T>(token);
      throw new SpiError('ENODEV', `nothing is bound to ${String(token)} in this device`);
    },
  };
}
