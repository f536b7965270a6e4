/** winston behind the `Logger` interface. */
import { createLogger as createWinston, format, type Logger as Winston, transports } from 'winston';
import { checkFields } from '../errors/guards.js';
import { type Kinds, oneLine, oneOf, optional } from '../spi/checks/index.js';
import type { Logger } from '../spi/index.js';

/** The most severe first; each includes those before it. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LoggerOptions {
  /** Default `info`; `debug` turns the trace on: a line for each call, completion and event. */
  readonly level?: LogLevel;
}

const OPTIONS: Kinds<LoggerOptions> = { level: optional(oneOf(LOG_LEVELS)) };

/**
 * A logger that writes lines to standard error; pass it to `openIa`. Without one, the environment
 * variable DAPL_LOG decides (docs/logging.md).
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  checkFields('createLogger', 1, options, OPTIONS);
  return fromWinston(
    createWinston({
      level: options.level ?? 'info',
      format: format.combine(format.timestamp(), format.printf(lineOf)),
      transports: [new transports.Console({ stderrLevels: [...LOG_LEVELS] })],
    }),
  );
}

/** `2006-01-02T03:04:05.678Z info message {"field":1}`, whatever the fields are. */
export function lineOf(info: Readonly<Record<string, unknown>>): string {
  const { timestamp, level, message, ...fields } = info;
  const extra = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields, inWords)}`;
  return oneLine(`${String(timestamp)} ${String(level)} ${String(message)}${extra}`, Infinity);
}

/** JSON omits the properties of errors, and has no big integers. */
function inWords(_name: string, value: unknown): unknown {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return typeof value === 'bigint' ? `${value}n` : value;
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
