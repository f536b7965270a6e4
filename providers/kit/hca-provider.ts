/** A provider that is its packet port: all else is the software HCA and the modules over it. */
import { checkOptions, FUNCTION, LIST, optional, TEXT } from '../../core/spi/checks/index.js';
import { refusing } from '../../core/spi/errors/consumer-errors.js';
import {
  type ConfiguredProvider,
  definePlugin,
  type Device,
  type PacketPort,
  PORT_COUNTERS,
  token,
} from '../../core/spi/index.js';
import { HCA_PROVIDES } from '../hca/device.js';
import { type HcaParameters, PARAMETERS, parametersOf } from '../hca/common/parameters.js';
import { machineTime } from '../host/index.js';
import { bindHca } from './bind-hca.js';
import { HcaNode } from './hca-node.js';

/** Additions of a port to its contract: calls of the device over it, and counters of its own. */
export interface HcaProviderHooks {
  /** `ia.mapFile`: without it there is none. */
  readonly mapFile?: NonNullable<Device['mapFile']>;
  /** `ia.allocate` with `shared`: without it there is none. */
  readonly shareMemory?: NonNullable<Device['shareMemory']>;
  /** `ia.allocate`, where the port prefers some memory to other; default: an ArrayBuffer. */
  readonly allocate?: Device['allocate'];
  /** Names in `counters` of the port that the device tells, beside PORT_COUNTERS. */
  readonly portCounters?: readonly string[];
}

export interface HcaProviderOptions<P extends PacketPort = PacketPort> {
  /** Name of the plugin: lower-case letters, digits and dashes; errors contain it. */
  readonly name: string;
  /** Two providers of one name and key share one device of the process. */
  readonly key: string;
  /** Opens the port, when the device opens. What it throws as SpiError is the consumer's answer. */
  readonly port: () => P | Promise<P>;
  /** Asked once, of the port that has been opened. */
  readonly hooks?: (port: P) => HcaProviderHooks;
  /** Limits and timers of the software HCA; docs/softroce.md has their ranges. */
  readonly parameters?: Partial<HcaParameters>;
}

const OPTIONS = {
  name: TEXT,
  key: TEXT,
  port: FUNCTION,
  hooks: optional(FUNCTION),
  parameters: PARAMETERS,
};
const HOOKS = {
  mapFile: optional(FUNCTION),
  shareMemory: optional(FUNCTION),
  allocate: optional(FUNCTION),
  portCounters: optional(LIST),
};

/**
 * A configured provider over a packet port: reliable and unreliable connections, datagrams, XRC,
 * shared receive queues and memory windows, with MAD, CM and XRC modules.
 *
 *     export const acme = (card: string): ConfiguredProvider =>
 *       hcaProvider({ name: 'acme', key: card, port: () => openAcmePort(card) });
 *
 * A plugin that checks options of its own returns the `instance` of it.
 * @throws DatError DAT_INVALID_PARAMETER; TypeError for a name that no plugin may have
 */
export function hcaProvider<P extends PacketPort>(
  options: HcaProviderOptions<P>,
): ConfiguredProvider {
  const refuse = refusing('hcaProvider');
  checkOptions(options, OPTIONS, refuse);
  const { name, key } = options;
  const parameters = parametersOf(options.parameters);
  const node = token<HcaNode>(`${name}/node`);
  const plugin = definePlugin<undefined>(
    {
      name,
      kind: 'provider',
      sdkVersion: '2.0',
      requires: [],
      provides: HCA_PROVIDES,
    },
    () => ({
      deviceKey: key,
      async open(registrar, logger): Promise<void> {
        const opened = await options.port();
        const hooks = options.hooks?.(opened) ?? {};
        checkOptions(hooks, HOOKS, refuse);
        const portCounters = [...PORT_COUNTERS, ...(hooks.portCounters ?? [])];
        const time = machineTime();
        const setup = {
          time,
          name: `${name} ${key}`,
          logger,
          parameters,
          hooks: { ...hooks, portCounters },
        };
        bindHca(registrar, {
          port: opened,
          node,
          makeNode: (port) => new HcaNode({ ...setup, port }),
          clock: time.clock,
          onOpen: (made, cm) => made.atExit(cm),
        });
      },
    }),
  );
  return plugin();
}
