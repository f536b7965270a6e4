import assert from 'node:assert/strict';
import {
  DAT_SUBTYPES,
  DAT_TYPES,
  DatClass,
  DatError,
  datStrError,
  type DatType,
  decodeReturnCode,
  returnCodeOf,
} from '../../../core/errors/index.js';
import { DAT_BY_ERRNO } from '../../../core/errors/from-spi.js';
import { DAT_SUBTYPE_NAMES, DAT_TYPE_NAMES, DAT_TYPE_VALUES } from '../../data/dat-codes.js';

describe('return codes', () => {
  it("are DAT's types, all of them, with DAT's numbers", () => {
    const ours = Object.entries(DAT_TYPES).map(([name, [value]]) => [name, value << 16]);
    const listed = DAT_TYPE_NAMES.map((name, n) => [name, n << 16]).slice(1);
    assert.deepEqual(ours, [...listed, ...Object.entries(DAT_TYPE_VALUES)]);
  });

  it("are DAT's subtypes, all of them, with DAT's numbers", () => {
    const ours = Object.entries(DAT_SUBTYPES).map(([name, [value]]) => [`DAT_${name}`, value]);
    assert.deepEqual(
      ours,
      DAT_SUBTYPE_NAMES.map((name, value) => [name, value]),
    );
    assert.equal(DAT_SUBTYPE_NAMES.length, 104);
  });

  it('have a meaning in words, each another', () => {
    for (const [name, [, text]] of Object.entries({ ...DAT_TYPES, ...DAT_SUBTYPES })) {
      assert.ok(name === 'NO_SUBTYPE' || text.length > 3, name);
    }
    assert.equal(new Set(Object.values(DAT_TYPES).map(([, text]) => text)).size, 25);
  });

  it('give no advice by themselves: what to do depends on the place that throws', () => {
    for (const [type, [, meaning]] of Object.entries(DAT_TYPES)) {
      const { hint, message } = new DatError(type as DatType, { operation: 'x' });
      assert.equal(hint, undefined);
      assert.equal(message, `x: ${meaning} [${type}]`);
    }
    assert.equal(new DatError('DAT_ABORT', { operation: 'x', hint: 'mine' }).hint, 'mine');
  });

  it('are class, type and subtype', () => {
    assert.deepEqual(DatClass, { SUCCESS: 0, WARNING: 0x40000000, ERROR: 0x80000000 });
    const code = returnCodeOf('DAT_PROVIDER_NOT_FOUND', 'DAT_THREAD_SAFETY_NOT_FOUND');
    assert.equal(code, 0x800a0067);
    assert.equal(decodeReturnCode(0x800a0000 + 104), undefined);
  });

  it('are told in words (dat_strerror)', () => {
    assert.deepEqual(datStrError(0x8007002f), {
      major: 'DAT_INVALID_STATE',
      minor: 'DAT_INVALID_STATE_EP_UNCONNECTED',
      text: 'the object is in a state that does not allow this: the endpoint is unconnected',
    });
    // The class bit is often missing in the reference implementation.
    assert.deepEqual(datStrError(0x000d0000), {
      major: 'DAT_QUEUE_EMPTY',
      minor: 'DAT_NO_SUBTYPE',
      text: 'the queue is empty',
    });
    assert.equal(datStrError(0).major, 'DAT_SUCCESS');
    for (const wrong of [0x80990000, 1, -1, 0.5, NaN, 2 ** 32, '7' as never, undefined as never]) {
      assert.throws(
        () => datStrError(wrong),
        (error) => DatError.isDatError(error) && error.subtype === 'DAT_INVALID_ARG1',
      );
    }
  });
});

describe('errno', () => {
  const table: readonly (readonly [string, string, string?])[] = [
    ['EOVERFLOW', 'DAT_LENGTH_ERROR'],
    ['EACCES', 'DAT_PRIVILEGES_VIOLATION'],
    ['EPERM', 'DAT_PROTECTION_VIOLATION'],
    ['EINVAL', 'DAT_INVALID_PARAMETER'],
    ['EISCONN', 'DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_CONNECTED'],
    ['ECONNREFUSED', 'DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_NOTREADY'],
    ['ETIMEDOUT', 'DAT_TIMEOUT_EXPIRED'],
    ['ENETUNREACH', 'DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNREACHABLE'],
    ['EADDRINUSE', 'DAT_CONN_QUAL_IN_USE'],
    ['EALREADY', 'DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_ACTCONNPENDING'],
    ['ENOMEM', 'DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_MEMORY'],
    ['EAGAIN', 'DAT_QUEUE_EMPTY'],
    ['EINTR', 'DAT_INTERRUPTED_CALL', 'DAT_SUB_INTERRUPTED'],
    ['EAFNOSUPPORT', 'DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_MALFORMED'],
  ];

  it('becomes what dapl makes of it', () => {
    const ours = DAT_BY_ERRNO as Readonly<Record<string, readonly unknown[]>>;
    for (const [errno, ...expected] of table) assert.deepEqual(ours[errno], expected, errno);
  });

  it('never becomes a subtype of another type', () => {
    for (const [errno, [type, subtype]] of Object.entries(DAT_BY_ERRNO)) {
      if (subtype?.startsWith('DAT_INVALID_') !== true) continue;
      assert.ok(subtype.startsWith(type), `${errno}: ${type} ${subtype}`);
    }
  });
});
