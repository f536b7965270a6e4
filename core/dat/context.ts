/** What the objects of an interface adapter share. */
import type { DeviceServices } from '../di/index.js';
import type { TraceFields } from './trace.js';

export interface IaContext extends DeviceServices {
  /** Writes the one line of a traced call; absent unless debug was enabled when the IA was opened. */
  readonly trace: ((call: string, fields: TraceFields) => void) | undefined;
}
