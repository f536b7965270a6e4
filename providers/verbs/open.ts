/** Opens the libraries, chooses a device and opens it; each refusal is a sentence. */
import { type Logger, SpiError } from '../../core/spi/index.js';
import { chooseDevice, type DeviceChoice } from './opening/choose-device.js';
import { type Addon, openLibraries } from './opening/libraries.js';
import { VerbsNode } from './node.js';
import { openingError } from './opening/opening-error.js';
import type { VerbsOptions } from './opening/options.js';
import { requestOf, systemOf } from './opening/request.js';

export interface OpenedNode {
  readonly node: VerbsNode;
  readonly addon: Addon;
  readonly choice: DeviceChoice;
}

/** @throws SpiError */
export async function openNode(options: VerbsOptions, logger: Logger): Promise<OpenedNode> {
  const addon = openLibraries(options.libraries);
  const system = await systemOf(options, addon);
  const choice = chooseDevice(system, await requestOf(options, system));
  logger.info(`device: ${choice.reason}`, { device: choice.device, port: choice.port });
  if (choice.warning !== undefined) logger.warn(choice.warning);
  const { polling = 'event' } = options;
  const { device: name, port: portNumber, gidIndex } = choice;
  try {
    const node = new VerbsNode({ addon, name, portNumber, gidIndex, polling, logger });
    return { node, addon, choice };
  } catch (error) {
    const device = system.devices.find((each) => each.name === name);
    const isOfFile = error instanceof SpiError && error.message.startsWith('ibv_open_device');
    throw isOfFile && device !== undefined ? openingError(device, error) : error;
  }
}
