/**
 * API tracing: one line a call, with parameter names and symbolic values, at debug level:
 * `ep.postSend(ep=3, segments=1, cookie=7, flags=SUPPRESS)`. Tracing is switched on or off when the
 * interface adapter opens, so that an untraced call costs one comparison.
 */
import { callLine } from '../../evd/index.js';
import type { Logger } from '../../spi/index.js';
import { DatHandle } from './handle.js';
import { show, Symbolic } from '../../spi/checks/index.js';

export { Symbolic };

export type TraceFields = Readonly<Record<string, unknown>>;

export function traceTo(logger: Logger): ((call: string, fields: TraceFields) => void) | undefined {
  if (!logger.isDebugEnabled()) return undefined;
  return (call, fields) => logger.debug(callLine(call, fields, textOf));
}

function textOf(value: unknown): string {
  if (value instanceof Symbolic) return value.text;
  if (value instanceof DatHandle) return String(value.id);
  return show(value);
}
