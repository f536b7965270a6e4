/** Opens the device of a provider, for tests at the level of verbs. */
import { openIa } from 'dapl';
import type { ConfiguredProvider, Device } from 'dapl/spi';
import { decorate } from 'dapl/spi/decorators';

export interface DeviceHolder {
  readonly device: Device;
  /** Closes the device and its modules. */
  close(): Promise<void>;
}

/** @throws DatError as `openIa` */
export async function openDevice(provider: ConfiguredProvider): Promise<DeviceHolder> {
  let device: Device | undefined;
  const holding = decorate(
    provider,
    {
      device: (inner) => {
        device = inner;
        return {};
      },
    },
    { name: 'open-device' },
  );
  const ia = await openIa(holding);
  return { device: device!, close: () => ia.close() };
}
