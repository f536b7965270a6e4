/**
 * Checks of parameters, options and invariants; values and objects in messages. Does no I/O.
 */
export { assert, InvariantError } from './assert.js';
export {
  checkInteger,
  checkNames,
  checkOptions,
  checkValue,
  checkValues,
  type Kinds,
  mustBe,
  outOfRange,
  type Refuse,
  within,
} from './checks.js';
export {
  ANYTHING,
  BOOLEAN,
  BYTES,
  expectedOf,
  FUNCTION,
  instanceOf,
  integer,
  integerText,
  isBitSet,
  isInteger,
  isU64,
  type Kind,
  kindOf,
  LIST,
  numberFrom,
  OBJECT,
  oneOf,
  optional,
  POSITIVE,
  record,
  SIGNAL,
  TEXT,
  withNearest,
} from './kinds.js';
export { nearest } from './nearest.js';
export { oneLine, show } from './show.js';
export { type Facts, hex, showAs, Symbolic } from './shown.js';
