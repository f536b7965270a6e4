/**
 * Adapters by name, API version and thread safety: DAT_PROVIDER_INFO, and the match that
 * dat_ia_openv makes. Name, major version and thread flag must be as requested, the minor version
 * as requested or higher.
 */
import { checkOptions, checkValue, invalid } from '../errors/guards.js';
import { BOOLEAN, kindOf, optional, show } from '../spi/checks/index.js';
import { DatError, type DatSubtype } from '../errors/index.js';
import type { ProviderInstance } from '../spi/index.js';
import { MAX_IA_NAME_LENGTH } from './dat-conf.js';

/** DAT_PROVIDER_INFO: an adapter that can be opened by name. */
export interface ProviderInfo {
  readonly iaName: string;
  /** API version of its registration. */
  readonly versionMajor: number;
  readonly versionMinor: number;
  readonly isThreadSafe: boolean;
  /** `dat.conf`: static, loaded on first opening; `registered`: by `registry.register`. */
  readonly origin: 'dat.conf' | 'registered';
  /** For a line of dat.conf: the library to load, and its parameters. */
  readonly libPath?: string;
  readonly iaParams?: string;
}

/** An adapter by name (dat_ia_openv). */
export interface IaName {
  readonly name: string;
  /** API version as `major.minor`; default `2.0`. */
  readonly version?: string;
  /** Default: either. */
  readonly threadSafe?: boolean;
}

/** A checked `IaName`. */
export interface ProviderQuery {
  readonly name: string;
  readonly major: number;
  readonly minor: number;
  readonly threadSafe: boolean | undefined;
}

/** The implemented API. */
export const DAT_VERSION = { major: 2, minor: 0 } as const;

const IA_NAME = kindOf<string>(
  `a string of 1 to ${MAX_IA_NAME_LENGTH} characters`,
  (name) => typeof name === 'string' && name !== '' && name.length <= MAX_IA_NAME_LENGTH,
);
const OPTIONAL_BOOLEAN = optional(BOOLEAN);

/** @throws DatError DAT_INVALID_PARAMETER */
export function providerQuery(operation: string, target: string | IaName): ProviderQuery {
  const given: IaName = typeof target === 'string' ? { name: target } : target;
  checkOptions(operation, given, ['name', 'version', 'threadSafe'], 'name');
  const { name, version, threadSafe } = given;
  checkValue(operation, 'name', name, IA_NAME);
  checkValue(operation, 'threadSafe', threadSafe, OPTIONAL_BOOLEAN);
  return { name, ...parseVersion(operation, version), threadSafe };
}

/** @throws DatError DAT_INVALID_PARAMETER for what is not `major.minor`; absent is 2.0 */
export function parseVersion(
  operation: string,
  version: unknown,
): { readonly major: number; readonly minor: number } {
  if (version === undefined) return DAT_VERSION;
  const [, major, minor] =
    typeof version === 'string' ? (/^(\d{1,9})\.(\d{1,9})$/.exec(version) ?? []) : [];
  if (major === undefined || minor === undefined) {
    throw invalid(operation, 'version', version, 'a version such as "2.0"');
  }
  return { major: Number(major), minor: Number(minor) };
}

/**
 * The adapters that match the query, in their order; at least one.
 * @param hint added when no name matches
 * @throws DatError DAT_PROVIDER_NOT_FOUND: the subtype says how far it fits (NAME_NOT_REGISTERED,
 * MAJOR_NOT_FOUND, MINOR_NOT_FOUND, THREAD_SAFETY_NOT_FOUND), the message what there is
 */
export function matchProviders<T extends { readonly info: ProviderInfo }>(
  operation: string,
  query: ProviderQuery,
  all: readonly T[],
  hint: string | undefined,
): readonly T[] {
  let left = all;
  for (const { subtype, fits } of CRITERIA) {
    const next = left.filter(({ info }) => fits(info, query));
    if (next.length === 0) throw notFound(operation, query, subtype, left, hint);
    left = next;
  }
  return left;
}

interface Criterion {
  readonly subtype: DatSubtype;
  readonly fits: (info: ProviderInfo, query: ProviderQuery) => boolean;
}

const CRITERIA: readonly Criterion[] = [
  {
    subtype: 'DAT_NAME_NOT_REGISTERED',
    fits: (info, query) => info.iaName === query.name,
  },
  {
    subtype: 'DAT_MAJOR_NOT_FOUND',
    fits: (info, query) => info.versionMajor === query.major,
  },
  {
    subtype: 'DAT_MINOR_NOT_FOUND',
    fits: (info, query) => info.versionMinor >= query.minor,
  },
  {
    subtype: 'DAT_THREAD_SAFETY_NOT_FOUND',
    fits: (info, query) => (query.threadSafe ?? info.isThreadSafe) === info.isThreadSafe,
  },
];

function notFound(
  operation: string,
  query: ProviderQuery,
  subtype: DatSubtype,
  near: readonly { readonly info: ProviderInfo }[],
  hint: string | undefined,
): DatError {
  const byName = subtype === 'DAT_NAME_NOT_REGISTERED';
  const known = near.map(({ info }) => (byName ? info.iaName : titleOfInfo(info)));
  const wanted = byName ? show(query.name) : titleOfQuery(query);
  const rest = known.length === 0 ? 'there is none' : `there are ${[...new Set(known)].join(', ')}`;
  return new DatError('DAT_PROVIDER_NOT_FOUND', {
    subtype,
    operation,
    message: `no provider plugin is registered as ${wanted}; ${rest}`,
    hint: byName ? hint : undefined,
    value: query.name,
  });
}

/** `"ib0" u2.0 nonthreadsafe`. */
export function titleOfInfo(info: ProviderInfo): string {
  const safety = info.isThreadSafe ? 'threadsafe' : 'nonthreadsafe';
  return `${show(info.iaName)} u${info.versionMajor}.${info.versionMinor} ${safety}`;
}

function titleOfQuery({ name, major, minor, threadSafe }: ProviderQuery): string {
  const safety = threadSafe === undefined ? '' : threadSafe ? ' threadsafe' : ' nonthreadsafe';
  return `${show(name)} u${major}.${minor}${safety}`;
}

// Two adapters that can be alternate paths to the same peers (DAT_HA_RELATIONSHIP).

/** CONFLICTING: the two providers do not agree. */
export type ProviderRelation = 'FALSE' | 'TRUE' | 'UNKNOWN' | 'CONFLICTING';

/** Asks both providers; a device is related to itself. */
export function relationOf(one: ProviderInstance, other: ProviderInstance): ProviderRelation {
  if (one.deviceKey === other.deviceKey) return 'TRUE';
  const answers = [one.relatedTo?.(other), other.relatedTo?.(one)];
  const [first, second = first] = answers.filter((answer) => answer !== undefined);
  if (first === undefined) return 'UNKNOWN';
  if (first !== second) return 'CONFLICTING';
  return first ? 'TRUE' : 'FALSE';
}
