/**
 * Injection tokens of a device's container. `Symbol.for`, so that two copies of us agree.
 */
import type { Clock, ProcessHold, Random, Scheduler } from '../time/clock.js';
import type { CmModule } from '../modules/cm.js';
import type { Device } from '../device/device.js';
import type { Logger } from './logger.js';
import type { MadModule } from '../modules/mad.js';
import type { PacketPort } from '../port/packet-port.js';
import type { Timers } from '../time/timers.js';
import type { XrcModule } from '../modules/xrc.js';

declare const TYPE: unique symbol;
/** A symbol with the type of its value. */
export type Token<T> = symbol & { readonly [TYPE]?: T };

/** A plugin's own token begins with the plugin's name and a slash, so that all are different. */
export const token = <T>(name: string): Token<T> => Symbol.for(`dapl:${name}`);

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
