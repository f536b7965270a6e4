/** Adds the methods that dapl needs to loggers such as `console`, which have only four levels. */
import { type Kind, kindOf } from '../spi/checks/index.js';
import type { Logger } from '../spi/index.js';

type Log = Logger['info'];
type Fields = Readonly<Record<string, unknown>>;

/** The four levels; missing methods are added. */
export type LogMethods = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'> & Partial<Logger>;

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** Loggers that `openIa` accepts. */
export const LOGGER_KIND: Kind<LogMethods> = kindOf(
  `an object with the functions ${LEVELS.join(', ')}, as console or createLogger() is`,
  (value) => {
    if (typeof value !== 'object' || value === null) return false;
    const given = value as Partial<LogMethods>;
    return LEVELS.every((level) => typeof given[level] === 'function');
  },
);

/**
 * A complete logger from the given one. Without `isDebugEnabled` nothing is logged at debug:
 * otherwise every call would be.
 */
export function loggerOf(given: LogMethods): Logger {
  const { child, isDebugEnabled } = given;
  if (typeof child === 'function' && typeof isDebugEnabled === 'function') return given as Logger;
  const debugs = (): boolean => typeof isDebugEnabled === 'function' && isDebugEnabled.call(given);
  return withFields(given, debugs, undefined);
}

function withFields(
  given: LogMethods,
  isDebugEnabled: () => boolean,
  own: Fields | undefined,
): Logger {
  const log =
    (level: (typeof LEVELS)[number]): Log =>
    (message, fields) => {
      const all = own === undefined ? fields : { ...own, ...fields };
      if (all === undefined) given[level](message);
      else given[level](message, all);
    };
  return {
    debug: (message, fields) => {
      if (isDebugEnabled()) log('debug')(message, fields);
    },
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    isDebugEnabled,
    child: (fields) => withFields(given, isDebugEnabled, { ...own, ...fields }),
  };
}
