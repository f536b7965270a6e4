/**
 * Completion flags as endpoint attributes: how completions of a stream notify, and the
 * configuration that the event dispatcher needs for that.
 */
import { type Evd, type EvdConfiguration, EvdFlags } from '../../evd/index.js';
import { CompletionFlags, flagNames } from '../common/constants.js';
import type { EpAttributes } from './attributes.js';
import { checkBits, invalid } from '../../errors/guards.js';

const { SUPPRESS, SOLICITED_WAIT, UNSIGNALLED, EVD_THRESHOLD } = CompletionFlags;

/** Each stream notifies in one way; without any of these bits, every completion does. */
const WAYS = SOLICITED_WAIT | UNSIGNALLED | EVD_THRESHOLD;

/** Bits that a stream accepts. SUPPRESS may always be posted, so naming it changes nothing. */
const ALLOWED = {
  recvCompletionFlags: SOLICITED_WAIT | UNSIGNALLED | EVD_THRESHOLD,
  requestCompletionFlags: SUPPRESS | UNSIGNALLED | EVD_THRESHOLD,
} as const;

/** @throws DatError DAT_INVALID_PARAMETER */
export function checkCompletionFlags(operation: string, attributes: EpAttributes): void {
  for (const name of ['recvCompletionFlags', 'requestCompletionFlags'] as const) {
    const flags = attributes[name];
    const expected = `of ${flagNames(CompletionFlags, ALLOWED[name])}`;
    checkBits(operation, name, flags, ALLOWED[name], expected, 'attributes');
    const ways = flags & WAYS;
    if ((ways & (ways - 1)) === 0) continue;
    throw invalid(
      operation,
      name,
      flags,
      `one of ${flagNames(CompletionFlags, WAYS)}`,
      'attributes',
    );
  }
}

/** The configuration that a stream with these flags gives its event dispatcher. */
export function configurationOf(flags: number): EvdConfiguration {
  if ((flags & EVD_THRESHOLD) !== 0) return 'THRESHOLD';
  return (flags & SOLICITED_WAIT) === 0 ? 'NOTIFY' : 'SOLICITED';
}

/**
 * If some completions do not notify, the event dispatcher takes completions only: other events
 * would notify for them. A private dispatcher does.
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function checkCompletionModel(
  operation: string,
  attributes: EpAttributes,
  recvEvd: Evd | undefined,
  requestEvd: Evd | undefined,
): void {
  const streams = EvdFlags.DTO | EvdFlags.RMR_BIND;
  for (const [name, evd] of [
    ['recvCompletionFlags', recvEvd],
    ['requestCompletionFlags', requestEvd],
  ] as const) {
    const flags = attributes[name];
    if (evd === undefined || (evd.streams & ~streams) === 0) continue;
    if ((flags & (SOLICITED_WAIT | UNSIGNALLED)) === 0) continue;
    const named = flagNames(CompletionFlags, flags);
    const expected = `without ${named}, or event dispatcher ${evd.id} of EvdFlags.DTO alone`;
    throw invalid(operation, name, flags, expected, 'attributes');
  }
}
