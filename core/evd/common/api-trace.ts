/** API tracing: one line a call, written like the call, with symbolic values. */

import { oneLine, show } from '../../spi/checks/index.js';
import type { Logger } from '../../spi/index.js';

/**
 * Logs `evd.modifyUpcall(evd=7, policy=ONE)` at debug level. Ask `logger.isDebugEnabled()` first,
 * because building the arguments costs time.
 */
export function traceCall(
  logger: Logger,
  call: string,
  parameters: Readonly<Record<string, unknown>>,
): void {
  logger.debug(callLine(call, parameters, textOf));
}

/** A call with its parameters, but for those that were left out. */
export function callLine(
  call: string,
  parameters: Readonly<Record<string, unknown>>,
  textOf: (value: unknown) => string,
): string {
  const list = Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${textOf(value)}`);
  return oneLine(`${call}(${list.join(', ')})`);
}

function textOf(value: unknown): string {
  if (typeof value === 'function') return value.name === '' ? 'function' : value.name;
  if (typeof value === 'symbol') return (value.description ?? 'symbol').replace('dapl:', '');
  if (typeof value === 'object' && value !== null) return show(value);
  return String(value);
}
