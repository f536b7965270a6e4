/** The logger of adapters opened without one. */
import { DatError } from '../../../core/errors/index.js';
import { mustBe, oneOf } from '../../../core/spi/checks/index.js';
import { type Logger, silentLogger } from '../../../core/spi/index.js';
import { createLogger, LOG_LEVELS, type LogLevel } from './winston.js';

const LEVEL = oneOf(LOG_LEVELS);
const made = new Map<LogLevel, Logger>();

/**
 * Writes to standard error from the level that the environment variable DAPL_LOG names; silent
 * without it. One logger for each level, shared by the process.
 * @param level value of DAPL_LOG
 * @throws DatError DAT_INVALID_PARAMETER for what is no level
 */
export function defaultLogger(level: string | undefined = process.env['DAPL_LOG']): Logger {
  if (level === undefined || level === '') return silentLogger;
  if (!LEVEL.accepts(level)) {
    throw new DatError('DAT_INVALID_PARAMETER', {
      operation: 'openIa',
      message: mustBe('the environment variable DAPL_LOG', level, LEVEL.expected),
      value: level,
    });
  }
  const logger = made.get(level) ?? createLogger({ level });
  made.set(level, logger);
  return logger;
}
