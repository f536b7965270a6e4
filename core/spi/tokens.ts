/**
 * Injection tokens: what a device's container holds. `Symbol.for`, so that two copies of us agree.
 */
import type { Clock, ProcessHold, Random, Scheduler } from './time/clock.js';
import type { CmModule } from './cm.js';
import type { Device } from './device.js';
import type { Logger } from './logger.js';
import type { MadModule } from './mad.js';
import type { PacketPort } from './packet-port.js';
import type { Timers } from './time/timers.js';
import type { XrcModule } from './xrc.js';

declare const TYPE: unique symbol;
/** A symbol that knows the type it stands for. */
export type Token<T> = symbol & { readonly [TYPE]?: T };

const token = <T>(name: string): Token<T> => Symbol.for(`dapl:${name}`);

export const CLOCK = token<Clock>('clock');
export const TIMERS = token<Timers>('timers');
export const RANDOM = token<Random>('random');
export const SCHEDULER = token<Scheduler>('scheduler');
export const PROCESS_HOLD = token<ProcessHold>('process-hold');
export const LOGGER = token<Logger>('logger');
export const PACKET_PORT = token<PacketPort>('packet-port');
export const DEVICE = token<Device>('device');
export const MAD = token<MadModule>('mad');
export const CM = token<CmModule>('cm');
export const XRC = token<XrcModule>('xrc');

export interface Resolver {
  /** @throws SpiError('ENODEV') when nothing is bound to the token */
  resolve<T>(token: Token<T>): T;
  has(token: Token<unknown>): boolean;
}

/** How a provider fills its device's container; each factory runs once, when first resolved. */
export interface Registrar {
  bind<T>(token: Token<T>, factory: (resolver: Resolver) => T): void;
}
