/** A logger as winston and most others have it. The default one is silent. */
export interface Logger {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Asked before a costly message is put together (API tracing). */
  isDebugEnabled(): boolean;
  /** A logger that adds these fields to every message. */
  child(fields: Readonly<Record<string, unknown>>): Logger;
}

const nothing = (): void => undefined;

/** Says nothing and costs nothing. */
export const silentLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  isDebugEnabled: () => false,
  child: () => silentLogger,
};
