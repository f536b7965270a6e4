/** Tables of bad input: each call has one thing wrong, and is refused by name and value. */
import assert from 'node:assert/strict';
import { DatError } from '../../core/index.js';
import type { Bench } from './fake-endpoints.js';

/** What it is, the call, DAT's type or subtype, and what the message says. */
export type BadInput = readonly [
  name: string,
  call: (bench: Bench) => unknown,
  code: string,
  text: RegExp,
];

/** A value of the wrong type, past the type checker as a JavaScript caller would. */
export const wrong = (value: unknown): never => value as never;

export function refuses(bench: Bench, [, call, code, text]: BadInput): void {
  assert.throws(
    () => call(bench),
    (error) => {
      assert.ok(DatError.isDatError(error), String(error));
      assert.ok(error.code === code || error.subtype === code, error.message);
      assert.match(error.message, text);
      return true;
    },
  );
}
