/**
 * Injection: parts of a device declare their dependencies as tokens, so missing ones and cycles are
 * found before anything is created.
 */
import type { Token } from './tokens.js';

/** A token that may be unbound: `undefined` is injected then. */
export interface OptionalToken<T> {
  readonly optional: Token<T>;
}

export const optional = <T>(token: Token<T>): OptionalToken<T> => ({ optional: token });

/** Tokens of the dependencies, each under the name that it is injected as. */
export type Inject = Readonly<Record<string, Token<unknown> | OptionalToken<unknown>>>;

export type Injected<I extends Inject> = {
  readonly [Name in keyof I]: I[Name] extends OptionalToken<infer T>
    ? T | undefined
    : I[Name] extends Token<infer T>
      ? T
      : never;
};

/** A part of a device, and its dependencies. */
export interface Part<T> {
  readonly inject: Inject;
  readonly make: (deps: never) => T;
}

export function part<const I extends Inject, T>(
  inject: I,
  make: (deps: Injected<I>) => T,
): Part<T> {
  return { inject, make };
}

/** How a provider fills its device's container. */
export interface Registrar {
  /**
   * The value of the token, or a function that takes no dependencies. It is created once, when
   * something first needs it. Others get the outermost wrapper (`withModules`, modules given to
   * `openIa`).
   */
  bind<T>(token: Token<T>, part: Part<T> | (() => T)): void;
  /** Runs once, when the device has been opened. */
  onOpen(part: Part<void>): void;
}

/** The token, and whether it must be bound. */
export function needOf(spec: Inject[string]): {
  readonly token: Token<unknown>;
  readonly isRequired: boolean;
} {
  return typeof spec === 'symbol'
    ? { token: spec, isRequired: true }
    : { token: spec.optional, isRequired: false };
}
