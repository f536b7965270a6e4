import assert from 'node:assert/strict';
import {
  DAT_SUBTYPES,
  DAT_TYPES,
  DatError,
  type DatSubtype,
  type DatType,
  decodeReturnCode,
  returnCodeOf,
  toDatError,
} from '../../../core/errors/index.js';
import { SpiError } from '../../../core/spi/index.js';

describe('DatError', () => {
  it("has DAT's number, with class, type and subtype", () => {
    const error = new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_EP_UNCONNECTED',
      operation: 'ep.postSend',
    });
    assert.equal(error.returnCode, 0x8007002f);
    assert.equal(returnCodeOf('DAT_QUEUE_EMPTY'), 0x800d0000);
    assert.equal(returnCodeOf('DAT_NOT_IMPLEMENTED'), 0xbfff0000);
  });

  it('names operation, meaning, hint and code in its message', () => {
    const error = new DatError('DAT_CONN_QUAL_IN_USE', {
      operation: 'ia.createPsp',
      hint: 'use another one',
    });
    assert.equal(
      error.message,
      'ia.createPsp: the connection qualifier is in use (use another one) [DAT_CONN_QUAL_IN_USE]',
    );
  });

  it('is known by its brand, not by its class', () => {
    const other = Object.assign(new Error('other copy'), { [Symbol.for('dapl:DatError')]: true });
    assert.ok(DatError.isDatError(new DatError('DAT_ABORT', { operation: 'x' })));
    assert.ok(DatError.isDatError(other));
    assert.ok(!DatError.isDatError(new Error('plain')));
    assert.ok(!DatError.isDatError(undefined));
  });

  it('has one number for each type and subtype, and finds them again', () => {
    for (const type of Object.keys(DAT_TYPES) as DatType[]) {
      assert.deepEqual(decodeReturnCode(returnCodeOf(type)), { type });
      // The class bit is often missing in the reference implementation.
      assert.deepEqual(decodeReturnCode(returnCodeOf(type) & 0x3fffffff), { type });
    }
    const numbers = Object.values(DAT_SUBTYPES).map(([number]) => number);
    assert.deepEqual(
      [...numbers].sort((a, b) => a - b),
      Array.from({ length: 104 }, (_, i) => i),
    );
    for (const key of Object.keys(DAT_SUBTYPES)) {
      if (key === 'NO_SUBTYPE') continue;
      const subtype = `DAT_${key}` as DatSubtype;
      const type = 'DAT_INVALID_PARAMETER';
      assert.deepEqual(decodeReturnCode(returnCodeOf(type, subtype)), { type, subtype });
    }
    assert.equal(decodeReturnCode(0x80990000), undefined);
  });

  it('comes of an SpiError by the errno, keeping it as cause', () => {
    const spi = new SpiError('EADDRINUSE', 'port 7 is taken');
    const error = toDatError(spi, { operation: 'ia.createPsp', value: 7 });
    assert.equal(error.code, 'DAT_CONN_QUAL_IN_USE');
    assert.equal(error.value, 7);
    assert.equal(error.cause, spi);
    assert.match(error.message, /port 7 is taken/);
    assert.equal(toDatError(error, { operation: 'other' }), error);
    assert.equal(toDatError(new Error('bug'), { operation: 'x' }).code, 'DAT_INTERNAL_ERROR');
    const mapped = toDatError(spi, { operation: 'x', map: { EADDRINUSE: ['DAT_PORT_IN_USE'] } });
    assert.equal(mapped.code, 'DAT_PORT_IN_USE');
  });

  it('has the advice of the provider, or the caller’s for that errno, or none', () => {
    const hints = { EADDRINUSE: 'take another' };
    const of = (error: unknown) => toDatError(error, { operation: 'x', hints }).hint;
    assert.equal(of(new SpiError('EADDRINUSE', 'taken')), 'take another');
    assert.equal(
      of(new SpiError('EADDRINUSE', 'taken', { hint: 'take 127.0.0.2' })),
      'take 127.0.0.2',
    );
    for (const errno of ['EPERM', 'EACCES', 'EINVAL'] as const) {
      assert.equal(of(new SpiError(errno, 'refused')), undefined);
    }
    assert.match(of(new TypeError('cm.listen is not a function')) ?? '', /`cause` has its stack/);
  });

  it('has one line, whatever its parts come from', () => {
    const hostile = `a\r\n\x1b[2J${'x'.repeat(10_000)}`;
    const hint = hostile;
    const { message } = new DatError('DAT_ABORT', { operation: hostile, message: hostile, hint });
    assert.match(message, /^a\\u000d\\u000a\\u001b\[2Jx+…: a.*x… \(a.*x…\) \[DAT_ABORT\]$/);
    assert.ok(message.length < 6200);
    const spi = new SpiError('EIO', hostile);
    assert.match(spi.message, /^a\\u000d\\u000a\\u001b\[2Jx+…$/);
  });
});
