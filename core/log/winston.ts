/** winston behind the `Logger` interface. */
import { createLogger as createWinston, format, type Logger as Winston, transports } from 'winston';
import type { Logger } from '../spi/index.js';

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export interface LoggerOptions {
  /** Default `info`; `debug` turns API tracing on, one line a call. */
  readonly level?: LogLevel;
}

/**
 * A logger that writes lines to standard error; give it to `openIa`. Without one, dapl is silent.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const line = format.printf(({ timestamp, level, message, ...fields }) => {
    const extra = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`;
    return `${String(timestamp)} ${level} ${String(message)}${extra}`;
  });
  return fromWinston(
    createWinston({
      level: options.level ?? 'info',
      format: format.combine(format.timestamp(), line),
      transports: [new transports.Console({ stderrLevels: ['error', 'warn', 'info', 'debug'] })],
    }),
  );
}

/** A winston logger of the application's own, as dapl uses it. */
export function fromWinston(winston: Winston): Logger {
  return {
    debug: (message, fields) => void winston.debug(message, fields),
    info: (message, fields) => void winston.info(message, fields),
    warn: (message, fields) => void winston.warn(message, fields),
    error: (message, fields) => void winston.error(message, fields),
    isDebugEnabled: () => winston.isLevelEnabled('debug'),
    child: (fields) => fromWinston(winston.child(fields)),
  };
}
