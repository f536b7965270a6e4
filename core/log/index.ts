/** Loggers. */
export { defaultLogger } from './default-logger.js';
export { createLogger, fromWinston, type LoggerOptions, type LogLevel } from './winston.js';
