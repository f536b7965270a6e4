/** The connection manager and the management datagrams of an open device, over their libraries. */
import { type CmModule, type Logger, type MadModule, SpiError } from '../../core/spi/index.js';
import { VerbsCm } from './cm/cm.js';
import { umadPathOf } from './mad/device.js';
import { Umad } from './mad/mad.js';
import type { OpenedNode } from './open.js';
import { cmOpeningError } from './opening/opening-error.js';

/** @throws SpiError when /dev/infiniband/rdma_cm does not open, with the reason */
export function makeCm({ node, addon }: OpenedNode, logger: Logger): CmModule {
  const { device, clock, driver } = node;
  const { timers } = driver;
  try {
    const onRemoval = (): void => device.noteRemoval();
    const scheduler = driver;
    const { gate } = device;
    const parts = { native: addon, device, clock, timers, scheduler, logger };
    return new VerbsCm({ ...parts, gate, onRemoval });
  } catch (error) {
    throw error instanceof SpiError ? cmOpeningError(error) : error;
  }
}

/** Opens no file before there is an agent: without one no right to it is needed. */
export function makeMad({ node, addon, choice }: OpenedNode, logger: Logger): MadModule {
  const { device, clock, random, driver } = node;
  return new Umad({
    native: addon,
    path: () => umadPathOf(choice.device, choice.port),
    device,
    timers: driver.timers,
    clock,
    random,
    scheduler: driver,
    logger,
  });
}
