/** A mock device, opened without an interface adapter. */
import { DeviceContainer } from '../../../core/di/index.js';
import { DEVICE, silentLogger } from '../../../core/spi/index.js';
import { mock, type MockOptions } from '../../../providers/mock/index.js';

export type Container = Pick<DeviceContainer, 'has' | 'resolve'>;

export async function openMock(options: MockOptions): Promise<Container> {
  const container = new DeviceContainer(silentLogger, 'mock');
  await mock(options).instance.open(container, silentLogger);
  container.seal();
  container.resolve(DEVICE);
  return container;
}
