/** Values that a JavaScript caller may hand to any parameter. */
import fc from 'fast-check';

/** Wrong types, and numbers at and beyond every edge. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    NaN,
    Infinity,
    -Infinity,
    -1,
    -0,
    0,
    0.5,
    1,
    65535,
    65536,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    1n,
    -1n,
    2n ** 64n,
    '',
    'abrupt',
    'ONE',
    true,
    Symbol('a symbol'),
    () => undefined,
    [],
    [null],
    {},
    Object.create(null),
    new Uint8Array(3),
    new Uint8Array(300),
    new Date(0),
    new Proxy({}, {}),
  ),
  fc.anything({ maxDepth: 2, withBigInt: true, withNullPrototype: true, withTypedArray: true }),
);

/** Any value, or an object with some of these keys and any values. */
export function optionsLike(keys: readonly string[]): fc.Arbitrary<unknown> {
  const entries = keys.map((key) => [key, anyValue] as const);
  const record = fc.record(Object.fromEntries(entries), { requiredKeys: [] });
  return fc.oneof({ weight: 1, arbitrary: anyValue }, { weight: 4, arbitrary: record });
}
