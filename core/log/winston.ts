/** winston behind the `Logger` interface. */
import { createLogger as createWinston, format, type Logger as Winston, transports } from 'winston';
import { checkFields } from '../errors/guards.js';
import { type Kinds, oneOf, optional } from '../spi/checks/index.js';
import type { Logger } from '../spi/index.js';

const LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LEVELS)[number];

export interface LoggerOptions {
  /** Default `info`; `debug` turns API tracing on, one line a call. */
  readonly level?: LogLevel;
}

const OPTIONS: Kinds<LoggerOptions> = { level: optional(oneOf(LEVELS)) };

/**
 * A logger that writes lines to standard error; give it to `openIa`. Without one, dapl is silent.
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  checkFields('createLogger', 1, options, OPTIONS);
  const line = format.printf(({ timestamp, level, message, ...fields }) => {
    const extra = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`;
    return `${String(timestamp)} ${level} ${String(message)}${extra}`;
  });
  return fromWinston(
    createWinston({
      level: options.level ?? 'info',
      format: format.combine(format.timestamp(), line),
      transports: [new transports.Console({ stderrLevels: [...LEVELS] })],
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
