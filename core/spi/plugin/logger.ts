/** A logger with the methods of winston and most others. The default one is silent. */
export interface Logger {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Call it before building a costly message (API tracing). */
  isDebugEnabled(): boolean;
  /** A logger that adds these fields to every message. */
  child(fields: Readonly<Record<string, unknown>>): Logger;
}

const nothing = (): void => undefined;

/** A silent logger, at no cost. */
export const silentLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  isDebugEnabled: () => false,
  child: () => silentLogger,
};
