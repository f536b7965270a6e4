/** Binds the node of a device in the device's container, in the same way for all providers. */
import {
  CLOCK,
  type Clock,
  DEVICE,
  type Device,
  part,
  PROCESS_HOLD,
  type ProcessHold,
  RANDOM,
  type Random,
  type Registrar,
  SCHEDULER,
  type Scheduler,
  TIMERS,
  type Timers,
  type Token,
} from '../../core/spi/index.js';

/** A device, and what drives it. */
export interface HostNode {
  readonly device: Device;
  readonly timers: Timers;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly processHold: ProcessHold;
}

/**
 * @param node is bound by the provider; it may be made of a packet port
 * @param clock apart from the node, so that what stands over the port may have it
 */
export function bindNode(registrar: Registrar, node: Token<HostNode>, clock: Clock): void {
  const bind = <N extends keyof HostNode>(token: Token<HostNode[N]>, name: N): void =>
    registrar.bind(
      token,
      part({ node }, (deps) => deps.node[name]),
    );
  registrar.bind(CLOCK, () => clock);
  bind(DEVICE, 'device');
  bind(TIMERS, 'timers');
  bind(RANDOM, 'random');
  bind(SCHEDULER, 'scheduler');
  bind(PROCESS_HOLD, 'processHold');
}
