/**
 * Checks of parameters and options, and of invariants; values and objects in messages. Does no I/O.
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
} from './checks.js';
export {
  ANYTHING,
  BOOLEAN,
  BYTES,
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
  SIGNAL,
  TEXT,
} from './kinds.js';
export { oneLine, show } from './show.js';
export { type Facts, hex, showAs, Symbolic } from './shown.js';
