/** Loggers. */
export { LOGGER_KIND, loggerOf, type LogMethods } from './any-logger.js';
export { defaultLogger } from './default-logger.js';
export {
  createLogger,
  fromWinston,
  type LoggerOptions,
  type LogLevel,
  winstonLoaded,
} from './winston.js';
