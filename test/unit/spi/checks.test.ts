/** Values and options: what each kind accepts, and what is said of the rest. */
import assert from 'node:assert/strict';
import {
  ANYTHING,
  BOOLEAN,
  BYTES,
  checkInteger,
  checkNames,
  checkOptions,
  checkValue,
  checkValues,
  FUNCTION,
  instanceOf,
  integer,
  isBitSet,
  isInteger,
  isU64,
  type Kind,
  kindOf,
  LIST,
  numberFrom,
  OBJECT,
  oneLine,
  oneOf,
  optional,
  outOfRange,
  POSITIVE,
  show,
  SIGNAL,
  TEXT,
} from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import { SpiError } from '../../../core/spi/index.js';

const refused = (name: string, value: unknown, expected: string): RangeError =>
  new RangeError(`${name}|${String(value)}|${expected}`);
const { signal } = new AbortController();
const nothing = (): void => undefined;

const KINDS: readonly (readonly [Kind, string, readonly unknown[], readonly unknown[]])[] = [
  [
    integer(2, 5),
    'an integer from 2 to 5',
    [2, 3, 5],
    [1, 6, 2.5, NaN, '3', 3n, undefined, null, [3]],
  ],
  [integer(1, Infinity), 'an integer from 1 on', [1, 2 ** 53 - 1], [0, 2 ** 53, Infinity]],
  [integer(0, 0), 'an integer from 0 to 0', [0], [1, -1]],
  [numberFrom(0, 1), 'a number from 0 to 1', [0, 0.5, 1], [-0.1, 1.1, NaN, '0', undefined]],
  [numberFrom(0, Infinity), 'a number from 0 on', [0, Infinity], [-1, NaN]],
  [POSITIVE, 'a number above 0', [Number.MIN_VALUE, 1, Infinity], [0, -1, NaN, '1', undefined]],
  [oneOf(['a', 2]), 'one of "a", 2', ['a', 2], ['b', '2', undefined]],
  [optional(integer(0, 1)), 'an integer from 0 to 1', [undefined, 0, 1], [2, null]],
  [instanceOf(Map, 'a Map'), 'a Map', [new Map()], [new Set(), {}, undefined]],
  [kindOf('even', (value) => Number(value) % 2 === 0), 'even', [2, '4'], [1, undefined]],
  [ANYTHING, 'anything', [undefined, null, 1], []],
  [BOOLEAN, 'a boolean', [true, false], [0, 'true', undefined]],
  [BYTES, 'a Uint8Array', [new Uint8Array(1), Buffer.alloc(1)], [[1], new ArrayBuffer(1), 'x']],
  [FUNCTION, 'a function', [nothing, Map], [{}, undefined]],
  [LIST, 'an array', [[], [1]], [{ length: 0 }, new Uint8Array(1), undefined]],
  [OBJECT, 'an object', [{}, new Map()], [null, [], nothing, 'x', undefined]],
  [SIGNAL, 'an AbortSignal', [signal], [{ aborted: false }, undefined]],
  [TEXT, 'a string that is not empty', ['x'], ['', 1, undefined]],
];

describe('kinds of values', () => {
  for (const [kind, expected, good, bad] of KINDS) {
    it(`${expected}: takes what is so, and nothing else`, () => {
      assert.equal(kind.expected, expected);
      for (const value of good) {
        assert.ok(kind.accepts(value), show(value));
        checkValue('x', value, kind, refused);
      }
      for (const value of bad) {
        assert.equal(kind.accepts(value), false, show(value));
        const message = `x|${String(value)}|${expected}`;
        assert.throws(() => checkValue('x', value, kind, refused), new RangeError(message));
      }
    });
  }

  it('tells integers, words of 64 bits and bit sets without making a kind', () => {
    assert.deepEqual(
      [-1, 0, 7, 8, 1.5, '1', 1n, undefined].map((value) => isInteger(value, 0, 7)),
      [false, true, true, false, false, false, false, false],
    );
    assert.deepEqual([0n, 2n ** 64n - 1n, 2n ** 64n, -1n, 0, undefined].map(isU64), [
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
    assert.deepEqual(
      [0, 5, 2, 1 + 2 ** 32, -1, 1.5, '1'].map((value) => isBitSet(value, 5)),
      [true, true, false, false, false, false, false],
    );
    assert.throws(
      () => checkInteger('x', 9, 1, 8, refused),
      /^RangeError: x\|9\|an integer from 1/,
    );
    checkInteger('x', 8, 1, 8, refused);
  });
});

describe('options', () => {
  interface Options {
    readonly port: number;
    readonly name?: string;
  }
  const KINDS_OF_OPTIONS = { port: integer(1, 9), name: optional(TEXT) };
  const fails = (options: unknown, message: RegExp): void =>
    assert.throws(() => checkOptions(options as Options, KINDS_OF_OPTIONS, refused), message);

  it('are an object of the names and values that a table has', () => {
    checkOptions<Options>({ port: 1 }, KINDS_OF_OPTIONS, refused);
    checkOptions<Options>({ port: 9, name: 'x' }, KINDS_OF_OPTIONS, refused);
    for (const none of [undefined, null, 'port', [], 7]) fails(none, /options\|.*\|an object$/);
    fails({ port: 1, nmae: 'x' }, /an option\|nmae\|one of port, name: did you mean "name"\?$/);
    fails({ port: 1, other: 'x' }, /an option\|other\|one of port, name$/);
    fails({}, /port\|undefined\|an integer from 1 to 9$/);
    fails({ port: 0 }, /port\|0\|an integer from 1 to 9$/);
    fails({ port: 1, name: '' }, /name\|\|a string that is not empty$/);
  });

  it('that are inherited are none', () => {
    fails({ port: 1, toString: 'x' }, /an option\|toString/);
    checkNames(Object.create({ other: 1 }), ['port'], refused);
  });

  it('may be a part of something larger', () => {
    const larger = { port: 1, other: 2 };
    checkValues(larger, { port: integer(1, 9) }, refused);
    assert.throws(() => checkValues(larger, { other: integer(3, 3) }, refused), /other\|2\|/);
  });

  it('are refused in one wording, by the error of the caller', () => {
    assert.throws(
      () => checkValue('udpPort', 'x', integer(1, 9), outOfRange),
      new RangeError('udpPort is "x"; it must be an integer from 1 to 9'),
    );
    const error = einval('backlog', undefined, 'an integer from 1 on');
    assert.ok(error instanceof SpiError);
    assert.equal(error.code, 'EINVAL');
    assert.equal(error.message, 'backlog is undefined; it must be an integer from 1 on');
  });
});

describe('a value in a message', () => {
  it('is short, on one line, and never throws', () => {
    const rows: readonly (readonly [unknown, string])[] = [
      [undefined, 'undefined'],
      [null, 'null'],
      ['a\n', '"a\\n"'],
      ['x'.repeat(61), `"${'x'.repeat(60)}…"`],
      [5n, '5n'],
      [nothing, 'a function'],
      [[1, 2], 'an array of 2'],
      [{}, 'an object'],
      [Object.create(null), 'an object'],
      [new Map(), 'a Map'],
      [Symbol('s'), 'Symbol(s)'],
      [new EventTarget(), 'an EventTarget'],
      ['\x1b[31m\u202e\u2028\u{e0041}', '"\\u001b[31m\\u202e\\u2028\\u{e0041}"'],
      [Symbol('\x07'), 'Symbol(\\u0007)'],
      [10n ** 99n, `1${'0'.repeat(59)}…`],
      [revoked(), 'an object'],
    ];
    for (const [value, text] of rows) assert.equal(show(value), text);
  });

  it('are of one line, and of 2000 characters at most', () => {
    assert.equal(oneLine('a\r\n\tb\x7f\x9b'), 'a\\u000d\\u000a\\u0009b\\u007f\\u009b');
    assert.equal(oneLine('é “ü” 😀'), 'é “ü” 😀');
    assert.equal(oneLine('x'.repeat(2001)), `${'x'.repeat(2000)}…`);
    assert.equal(oneLine('xxx😀', 4), 'xxx\\ud83d…');
  });
});

/** Whatever is asked of it throws. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
