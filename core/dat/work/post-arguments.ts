/** Arguments of the posting calls, and what is thrown for a wrong one. */
import type { DatError } from '../../errors/index.js';
import { invalid } from '../../errors/guards.js';
import { assert } from '../../spi/checks/index.js';

/**
 * Arguments of the posting calls in the order of DAT's prototypes (DAT facts 1.3, 1.5, 1.6, 1.8):
 * the n of DAT_INVALID_ARGn. A call that is ours alone counts as the one of DAT that it extends.
 */
const ARGUMENTS: Readonly<Record<string, string>> = {
  'ep.postSend': 'ep count segments cookie flags',
  'ep.postSendWithInvalidate': 'ep count segments cookie flags invalidate rmrContext',
  'ep.postSendWithImmediate': 'ep count segments cookie immediate flags',
  'ep.postRecv': 'ep count segments cookie flags',
  'ep.postRdmaWrite': 'ep count segments cookie remote flags',
  'ep.postRdmaRead': 'ep count segments cookie remote flags',
  'ep.postRdmaReadToRmr': 'ep segments cookie remote flags',
  'ep.postRdmaWriteWithImmediate': 'ep count segments cookie remote immediate flags',
  'ep.postFetchAdd': 'ep add segments cookie remote flags',
  'ep.postCompareSwap': 'ep compare swap segments cookie remote flags',
  'ep.postSendUd': 'ep count segments to cookie flags',
  'ep.postSendUdWithImmediate': 'ep count segments to cookie immediate flags',
  'srq.postRecv': 'srq count segments cookie',
  'rmr.bind': 'rmr lmr segment privileges vaType ep cookie flags',
  'rmr.unbind': 'rmr lmr segment privileges vaType ep cookie flags',
};

/** By call and argument: counted from 1. */
const POSITIONS = new Map(
  Object.entries(ARGUMENTS).map(([operation, list]) => [
    operation,
    new Map(list.split(' ').map((name, i) => [name, i + 1])),
  ]),
);

/** Where a posting call has an argument, counted from 1; one of a single segment has no count. */
export function positionOf(operation: string, argument: string): number {
  const call = POSITIONS.get(operation);
  const position =
    call?.get(argument) ?? (argument === 'count' ? call?.get('segments') : undefined);
  assert(position !== undefined, 'a posting call has the argument', argument);
  return position;
}

/** What a posting call throws for an argument; `name` where that says more than the argument. */
export function badArgument(
  operation: string,
  argument: string,
  value: unknown,
  expected: string,
  name = argument,
): DatError {
  return invalid(operation, positionOf(operation, argument), name, value, expected);
}
