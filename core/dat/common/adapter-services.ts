/** Services that the objects of an interface adapter share, and its hold on the device. */
import type { DeviceServices, TeardownStep } from '../../di/index.js';
import type { AsyncEventType, MadModule } from '../../spi/index.js';
import type { TraceFields } from './trace.js';

export interface IaContext extends DeviceServices {
  /**
   * Writes the one line of a traced call; absent unless debug was enabled when the IA was opened.
   */
  readonly trace: ((call: string, fields: TraceFields) => void) | undefined;
}

/** An open device, held by one interface adapter. */
export interface DeviceLease {
  /** Receives events of the device and its port; every interface adapter on it gets them. */
  onEvent(listener: (event: AsyncEventType) => void): void;
  /** The device's MAD module, if it has one. */
  mad(): MadModule | undefined;
  /**
   * Gives the device back, once. The last holder gets the teardown steps: the modules before the
   * queue pairs, the device last; call `done` when they have run.
   */
  release(): DeviceRelease;
}

export interface DeviceRelease {
  readonly modules: readonly TeardownStep[];
  readonly device: readonly TeardownStep[];
  done(): void;
}
