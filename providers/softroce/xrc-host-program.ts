/**
 * The process that hosts an XRC domain: `node FILE '{"name", "options"}'`. It takes its name before
 * it opens its device, so that one of two that start together ends at once. It ends with its last
 * opener.
 */
import { openIa } from '../../core/index.js';
import { definePlugin, SpiError } from '../../core/spi/index.js';
import type { UnixListener } from '../host/index.js';
import { SOFTROCE_META, type SoftroceOptions, softroceInstance } from './instance.js';
import { loadNativeAddon, type NativeAddon } from './port/native-addon.js';
import { DeviceObjects } from './xrc-host/host-objects.js';
import { Server } from './xrc-host/server.js';

const BACKLOG = 64;
/** The interval of a timer that keeps the process alive: Node ends one that waits for nothing. */
const HOLD_MS = 1_000;

interface Task {
  readonly name: string;
  readonly options: SoftroceOptions;
}

/** @returns undefined where another host has the name */
function listen(addon: NativeAddon, name: string): UnixListener | undefined {
  try {
    return addon.listenUnix(name, BACKLOG);
  } catch (error) {
    if ((error as { code?: string }).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}

async function host({ name, options }: Task): Promise<void> {
  const addon = loadNativeAddon();
  const listener = addon && listen(addon, name);
  if (addon === undefined || listener === undefined) return;
  const hold = setInterval(() => undefined, HOLD_MS);
  let end = (): void => undefined;
  const empty = new Promise<void>((resolve) => (end = resolve));
  try {
    const server = new Server({
      listener,
      closeDescriptor: (descriptor) => addon.closeDescriptor(descriptor),
      onEmpty: end,
    });
    const provider = definePlugin(SOFTROCE_META, (given: SoftroceOptions) =>
      softroceInstance(given, ({ device }, cm) =>
        server.serve(new DeviceObjects(device, cm, addon)),
      ),
    );
    const ia = await openIa(provider({ ...options, shared: true })).catch((error: unknown) => {
      const message = `its host process cannot open the device: ${String(error)}`;
      server.refuse(new SpiError('EINVAL', message, { cause: error }));
      throw error;
    });
    await empty;
    // Openers that have connected meanwhile see it end, and start another host.
    listener.close();
    await ia.close('abrupt');
  } finally {
    listener.close();
    clearInterval(hold);
  }
}

await host(JSON.parse(process.argv[2] ?? '{}') as Task);
