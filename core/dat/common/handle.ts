/** The base of all DAT objects: a number, an owner, and an end. */
import { DatError, type DatSubtypeKey } from '../../errors/index.js';
import type { AdapterServices, AdapterState } from './adapter-state.js';
import { mustBe } from '../../spi/checks/index.js';
import type { TraceFields } from './trace.js';

/** DAT_HANDLE_TYPE. */
export type HandleType =
  | 'IA'
  | 'PZ'
  | 'LMR'
  | 'RMR'
  | 'SRQ'
  | 'EVD'
  | 'CNO'
  | 'EP'
  | 'PSP'
  | 'RSP'
  | 'CSP'
  | 'CR'
  | 'XRC_DOMAIN';

/** DAT_HANDLE_TYPE of uDAPL: values of an object's `handleType` (dat_get_handle_type). */
export const HandleTypeNumber = {
  CR: 0,
  EP: 1,
  EVD: 2,
  IA: 3,
  LMR: 4,
  PSP: 5,
  PZ: 6,
  RMR: 7,
  RSP: 8,
  CNO: 9,
  SRQ: 10,
  CSP: 11,
} as const;

/** Brand of all our objects, of whichever copy of the library. */
export const HANDLE = Symbol.for('dapl:handle');

/** Public members of any DAT object. */
export interface DatHandle {
  readonly [HANDLE]: HandleType;
  /** Names the object in traces and messages; unique in the process. */
  readonly id: number;
  readonly handleType: HandleType;
  /** For the consumer's use (dat_set_consumer_context). */
  consumerContext: unknown;
  /** True once the object is freed: any other call on it then throws DAT_INVALID_HANDLE. */
  readonly isFreed: boolean;
}

/** Supports `value instanceof DatHandle`. It is no class, because our classes have other bases. */
export const DatHandle = {
  [Symbol.hasInstance](value: unknown): value is DatHandle {
    return typeof value === 'object' && value !== null && HANDLE in value;
  },
};

let lastId = 0;

/** The number of the next object; unique in the process. */
export function nextHandleId(): number {
  return ++lastId;
}

/** An object as its calls see it. */
export interface Callee extends DatHandle {
  /** @internal */
  readonly core: { readonly context: Pick<AdapterServices, 'trace'> };
  /** The call that has ended it. */
  readonly freedBy: string | undefined;
}

/**
 * Begins a call on an object: traces it, and checks the handle.
 * @returns the call
 * @throws DatError DAT_INVALID_HANDLE when the object has been freed
 */
export function begin(callee: Callee, operation: string, fields: TraceFields = {}): string {
  const { handleType, id, core, freedBy } = callee;
  core.context.trace?.(operation, { [nameInTraces(handleType)]: id, ...fields });
  if (freedBy !== undefined) throw endedError(callee, freedBy, operation);
  return operation;
}

function nameInTraces(type: HandleType): string {
  return type === 'XRC_DOMAIN' ? 'domain' : type.toLowerCase();
}

/** Base of classes without another base. */
export abstract class Handle implements Callee {
  readonly id = nextHandleId();
  abstract readonly handleType: HandleType;
  consumerContext: unknown = undefined;
  /** @internal */
  abstract readonly core: AdapterState;
  /** @internal */
  freedBy: string | undefined = undefined;

  get [HANDLE](): HandleType {
    return this.handleType;
  }

  get isFreed(): boolean {
    return this.freedBy !== undefined;
  }

  /** @internal */
  markFreed(by: string): void {
    this.freedBy = by;
  }

  /** @internal @throws DatError DAT_INVALID_HANDLE when the object has been freed */
  assertLive(operation: string): void {
    if (this.freedBy !== undefined) throw endedError(this, this.freedBy, operation);
  }
}

/** The error of a call on an object that has been freed. */
export function endedError(handle: DatHandle, by: string, operation: string): DatError {
  return new DatError('DAT_INVALID_HANDLE', {
    subtype: handleSubtype(handle.handleType),
    operation,
    message: `${handle.handleType.toLowerCase()} ${handle.id} was ended by ${by}`,
    value: handle,
  });
}

/** An object of an interface adapter. */
type Owned = DatHandle & { readonly core: AdapterState };

/** Objects as parameters, by DAT's name of their kind: the requirement, and how to get one. */
const PARAMETERS = {
  PZ: ['pz', 'a Pz', 'ia.createPz() makes them'],
  LMR: ['lmr', 'an Lmr', 'ia.allocate() and ia.createLmr() make them'],
  EP: ['ep', 'an Ep', 'ia.createEndpoint() makes them'],
  SRQ: ['srq', 'an Srq', 'ia.createSrq() makes them'],
  CR: ['cr', 'a Cr', 'they come as events of service points'],
} as const;

/**
 * A parameter that must be a live object of one class and of one IA.
 * @param kind DAT's name of the parameter's kind; also selects the subtype
 */
export function checkHandle<T extends Owned>(
  operation: string,
  type: abstract new (...args: never[]) => T,
  kind: keyof typeof PARAMETERS,
  value: unknown,
  owner: AdapterState,
): asserts value is T {
  if (value instanceof type && !value.isFreed && value.core === owner) return;
  const [name, expected, source] = PARAMETERS[kind];
  const isOfKind = value instanceof type;
  const why = isOfKind && value.isFreed ? 'has been freed' : 'belongs to another interface adapter';
  throw new DatError('DAT_INVALID_HANDLE', {
    subtype: `DAT_INVALID_HANDLE_${kind}`,
    operation,
    message: isOfKind ? `${name} ${value.id} ${why}` : mustBe(name, value, expected),
    hint: isOfKind ? undefined : source,
    value,
  });
}

type HandleSubtypeName = DatSubtypeKey extends infer K
  ? K extends `INVALID_HANDLE_${infer Name}`
    ? Name
    : never
  : never;

function handleSubtype(
  type: HandleType,
): `DAT_INVALID_HANDLE_${HandleSubtypeName}` | 'DAT_INVALID_HANDLE1' {
  if (type === 'EVD') return 'DAT_INVALID_HANDLE_EVD_REQUEST';
  // DAT has no subtype for objects that it does not have.
  return type === 'XRC_DOMAIN' ? 'DAT_INVALID_HANDLE1' : `DAT_INVALID_HANDLE_${type}`;
}
