/**
 * Injection: parts of a device declare their dependencies as tokens, so missing ones and cycles are
 * found before anything is created. A class declares them by `@inject` on the parameters of its
 * constructor, a function by name.
 */
import 'reflect-metadata';
import { checkValue, kindOf, mustBe, type Refuse } from '../checks/index.js';
import { type Token, token } from './tokens.js';

/** A token that may be unbound: `undefined` is injected then. */
export interface OptionalToken<T> {
  readonly optional: Token<T>;
}

export const optional = <T>(token: Token<T>): OptionalToken<T> => ({ optional: token });

export type Need = Token<unknown> | OptionalToken<unknown>;

/** Tokens of the dependencies, each under the name that it is injected as. */
export type Inject = Readonly<Record<string, Need>>;

/** The value that is injected for a token, or the object for tokens by name. */
export type Given<N extends Need | Inject> =
  N extends OptionalToken<infer T>
    ? T | undefined
    : N extends Token<infer T>
      ? T
      : N extends Inject
        ? Injected<N>
        : never;

export type Injected<I extends Inject> = { readonly [Name in keyof I]: Given<I[Name]> };

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

/** A class with `@inject` on each parameter of its constructor. */
export type PartClass<T> = new (...given: never[]) => T;

/** A part of a device that is an instance of a class. */
export interface ClassPart<T> {
  readonly useClass: PartClass<T>;
  /** Injected for `OPTIONS`. */
  readonly options?: unknown;
}

/** How a provider fills its device's container. */
export interface Registrar {
  /**
   * The value of the token: a class, a part, or a function that takes no dependencies. It is
   * created once, when something first needs it. Others get the outermost wrapper (`withModules`,
   * modules given to `openIa`).
   */
  bind<T>(token: Token<T>, part: PartClass<T> | ClassPart<T> | Part<T> | (() => T)): void;
  /** Runs once, when the device has been opened. */
  onOpen(part: Part<void>): void;
}

/**
 * The options that a module of a class is configured with; `undefined` without any. They fit a
 * parameter of any type.
 */
export const OPTIONS: Token<never> = token('options');

/** The dependency of one parameter. */
export interface Parameter {
  readonly token: Token<unknown>;
  readonly isRequired: boolean;
  /** The members of an object made for it; the token is its own then. */
  readonly members?: Inject;
}

type Constructor = abstract new (...given: never) => unknown;
/** The class, if the parameter at the index takes a T. */
type Taking<C extends Constructor, I extends number, T> = [T] extends [ConstructorParameters<C>[I]]
  ? C
  : never;

const PARAMETERS = Symbol.for('dapl:parameters');

/**
 * Declares what a parameter of a constructor is given: the value of a token, `optional(token)`, or
 * an object with the values of several tokens by name. The compiler refuses a token of another type
 * than the parameter's.
 *
 *     constructor(@inject(MAD) private readonly mad: MadModule, @inject(OPTIONS) options?: Options)
 *
 * @throws TypeError for what is no token, and on anything but a constructor's parameter
 */
export function inject<const N extends Need | Inject>(
  need: N,
): <C extends Constructor, const I extends number>(
  Class: C & Taking<C, I, Given<N>>,
  member: undefined,
  index: I,
) => void {
  const parameter = parameterOf(need);
  return (Class: unknown, _member, index) => {
    checkValue('its target', Class, CLASS, refuse);
    const own = Reflect.getOwnMetadata(PARAMETERS, Class as object) as Parameter[] | undefined;
    const parameters = [...(own ?? [])];
    parameters[index] = parameter;
    Reflect.defineMetadata(PARAMETERS, parameters, Class as object);
  };
}

const CLASS = kindOf('a class: it is for parameters of a constructor', (value) => {
  return typeof value === 'function';
});
const NEED = kindOf('a token, optional(token), or an object of tokens by name', (need) => {
  return typeof need === 'symbol' || (typeof need === 'object' && need !== null);
});
const TOKEN = kindOf<symbol>('a token', (value) => typeof value === 'symbol');
const refuse: Refuse = (name, value, expected) =>
  new TypeError(`inject: ${mustBe(name, value, expected)}`);

function parameterOf(need: Need | Inject): Parameter {
  checkValue('what is injected', need, NEED, refuse);
  if (typeof need === 'symbol') return needOf(need);
  if ('optional' in need) {
    checkValue('optional', need.optional, TOKEN, refuse);
    return needOf(need as OptionalToken<unknown>);
  }
  checkInject(need, refuse);
  return { token: Symbol('dependencies'), isRequired: true, members: need };
}

/** @throws what `refuse` makes, for what is no token */
export function checkInject(inject: Inject, refuse: Refuse): void {
  for (const [name, spec] of Object.entries(inject)) {
    const token: unknown = (spec as { readonly optional?: unknown } | undefined)?.optional ?? spec;
    checkValue(`inject.${name}`, token, TOKEN, refuse);
  }
}

/** By index; those of its base class if it has no constructor of its own. */
export function parametersOf(Class: PartClass<unknown>): readonly (Parameter | undefined)[] {
  return (Reflect.getMetadata(PARAMETERS, Class) as Parameter[] | undefined) ?? [];
}

/** Dependencies of a part, whatever its form. */
export function needsOf(part: Part<unknown> | ClassPart<unknown>): readonly Parameter[] {
  if ('inject' in part) return Object.values(part.inject).map(needOf);
  return parametersOf(part.useClass)
    .filter((each) => each !== undefined)
    .flatMap((each) => (each.members ? Object.values(each.members).map(needOf) : each))
    .filter(({ token }) => token !== OPTIONS);
}

/** The token, and whether it must be bound. */
export function needOf(spec: Need): Parameter {
  return typeof spec === 'symbol'
    ? { token: spec, isRequired: true }
    : { token: spec.optional, isRequired: false };
}
