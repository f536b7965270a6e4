/** winston behind the `Logger` interface. */
import type { Logger as Winston } from 'winston';
import { checkFields } from '../../../core/errors/guards.js';
import { type Kinds, oneLine, oneOf, optional } from '../../../core/spi/checks/index.js';
import type { Logger } from '../../../core/spi/index.js';
import { loggerOf, type LogMethods } from '../../../core/registry/any-logger.js';

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
  checkFields('createLogger', options, OPTIONS);
  const least = options.level ?? 'info';
  loading ??= load();
  const [error, warn, info, debug] = LOG_LEVELS.map((level, i): LogMethods['info'] => {
    return (message, fields) => {
      if (i > LOG_LEVELS.indexOf(least)) return;
      write({ timestamp: new Date().toISOString(), ...fields, level, message });
    };
  });
  const isDebugEnabled = (): boolean => least === 'debug';
  return loggerOf({ error: error!, warn: warn!, info: info!, debug: debug!, isDebugEnabled });
}

type Line = Readonly<Record<string, unknown>> & {
  readonly level: LogLevel;
  readonly message: string;
};

/**
 * winston takes a third of the time that an import of dapl takes, so it is imported when a logger
 * is made. Lines wait for it.
 */
let loading: Promise<void> | undefined;
const waiting: Line[] = [];
let write = (line: Line): void => void waiting.push(line);

/** Ends when winston can write what was logged; undefined if no logger of dapl was made yet. */
export function winstonLoaded(): Promise<void> | undefined {
  return loading;
}

async function load(): Promise<void> {
  // A process that ends first still has its lines.
  const writeAtExit = (): void => {
    for (const line of waiting) process.stderr.write(`${lineOf(line)}\n`);
  };
  process.once('exit', writeAtExit);
  const { createLogger: createWinston, format, transports } = await import('winston');
  const winston = createWinston({
    level: 'debug',
    format: format.printf(lineOf),
    transports: [new transports.Console({ stderrLevels: [...LOG_LEVELS] })],
  });
  process.off('exit', writeAtExit);
  write = (line) => void winston.log(line);
  waiting.splice(0).forEach(write);
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
