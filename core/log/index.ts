/** Loggers. */
export { createLogger, fromWinston, type LoggerOptions, type LogLevel } from './winston.js';
