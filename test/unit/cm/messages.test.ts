import assert from 'node:assert/strict';

import fc from 'fast-check';

import { CM_ATTRIBUTE, type CmMessageName } from '../../../plugins/cm/wire/cm-codec.js';
import type {
  BytesField,
  FieldValue,
  Layout,
  Uint64Field,
  UintField,
  WireCodec,
} from '../../../plugins/cm/wire/field-table.js';
import { CM_CODECS } from '../../../plugins/cm/wire/message.js';
import { FIELD_IMAGES } from './field-images.js';

type Field = UintField | Uint64Field | BytesField;
type Message = Record<string, FieldValue>;

const names = Object.keys(CM_ATTRIBUTE) as CmMessageName[];

/** The codecs as the tests use them: any message, by field name. */
function codecOf(name: CmMessageName): WireCodec<Layout> {
  return CM_CODECS[name];
}

function fieldsOf(name: CmMessageName): [string, Field][] {
  return Object.entries(codecOf(name).layout);
}

function zeroMessage(name: CmMessageName): Message {
  const zero = (field: Field): FieldValue =>
    field.kind === 'uint' ? 0 : field.kind === 'uint64' ? 0n : new Uint8Array(field.length);
  return Object.fromEntries(fieldsOf(name).map(([key, field]) => [key, zero(field)]));
}

function ones(field: Field): FieldValue {
  if (field.kind === 'uint') return field.max;
  if (field.kind === 'uint64') return 0xffff_ffff_ffff_ffffn;
  return new Uint8Array(field.length).fill(0xff);
}

/** 232 zeros with the given hex strings at the given offsets. */
function imageOf(pieces: readonly (number | string)[]): string {
  const image = Buffer.alloc(232);
  for (let at = 0; at < pieces.length; at += 2) {
    image.write(String(pieces[at + 1]), Number(pieces[at]), 'hex');
  }
  return image.toString('hex');
}

function arbitrary(field: Field): fc.Arbitrary<FieldValue> {
  if (field.kind === 'uint') return fc.integer({ min: 0, max: field.max });
  if (field.kind === 'uint64') return fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn });
  return fc.uint8Array({ minLength: field.length, maxLength: field.length });
}

for (const name of names) {
  const codec = codecOf(name);

  describe(`CM ${name}`, () => {
    it('has each field where the specification has it, and only there', () => {
      const images = FIELD_IMAGES[name];
      assert.deepEqual(Object.keys(images).sort(), Object.keys(codec.layout).sort());
      for (const [key, field] of fieldsOf(name)) {
        const data = new Uint8Array(232).fill(0xa5);
        codec.emit({ ...zeroMessage(name), [key]: ones(field) }, data);
        assert.equal(Buffer.from(data).toString('hex'), imageOf(images[key] ?? []), key);
      }
    });

    it('reads each field from there, whatever the other bits are', () => {
      for (const [key, field] of fieldsOf(name)) {
        const inverse = Buffer.from(imageOf(FIELD_IMAGES[name][key] ?? []), 'hex');
        for (let at = 0; at < 232; at += 1) inverse[at] = 0xff ^ (inverse[at] ?? 0);
        // Lengths with a limit: everything else all ones would be out of range.
        for (const [other, { kind, ...rest }] of fieldsOf(name)) {
          if (kind === 'uint' && other.endsWith('Length')) inverse[firstByte(rest)] = 0;
        }
        const zero = codec.parse(Uint8Array.from(inverse))?.[key];
        assert.deepEqual(zero, zeroMessage(name)[key], key);
        const image = Buffer.from(imageOf(FIELD_IMAGES[name][key] ?? []), 'hex');
        assert.deepEqual(codec.parse(Uint8Array.from(image))?.[key], ones(field), key);
      }
    });

    it('parses what it emitted', () => {
      const record = Object.fromEntries(
        fieldsOf(name).map(([key, field]) => [key, arbitrary(field)]),
      );
      fc.assert(
        fc.property(fc.record(record), (message) => {
          assert.deepEqual(codec.parse(codec.emit(message)), { ...message });
        }),
        { numRuns: 50 },
      );
    });

    it('refuses other lengths and values that do not fit', () => {
      for (const length of [0, 231, 233, 256]) {
        assert.equal(codec.parse(new Uint8Array(length)), undefined);
      }
      assert.throws(() => codec.emit(zeroMessage(name), new Uint8Array(231)), /has 231.*be 232/);
      for (const [key, field] of fieldsOf(name)) {
        const data = new Uint8Array(232).fill(0xa5);
        for (const value of outOfRange(field)) {
          const message = { ...zeroMessage(name), [key]: value };
          assert.throws(
            () => codec.emit(message, data),
            new RegExp(`^RangeError: ${name}.${key}(.length)? is `),
          );
        }
        assert.ok(
          data.every((byte) => byte === 0xa5),
          'untouched',
        );
      }
    });
  });
}

function firstByte(field: object): number {
  return (field as UintField).parts[0]?.byte ?? 0;
}

function outOfRange(field: Field): FieldValue[] {
  if (field.kind === 'uint') return [-1, field.max + 1, 0.5, NaN, 1n];
  if (field.kind === 'uint64') return [-1n, 2n ** 64n, 0];
  const tooLong = new Uint8Array(field.length + 1);
  return field.padded ? [tooLong, 0] : [tooLong, new Uint8Array(field.length - 1), 0];
}

describe('CM private data', () => {
  it('is padded with zeros when shorter', () => {
    const codec = codecOf('RTU');
    const message = { ...zeroMessage('RTU'), privateData: Uint8Array.of(1, 2, 3) };
    const parsed = codec.parse(codec.emit(message, new Uint8Array(232).fill(0xa5)));
    const expected = new Uint8Array(224);
    expected.set([1, 2, 3]);
    assert.deepEqual(parsed?.['privateData'], expected);
  });

  it('names length and limit when too long', () => {
    const message = { ...zeroMessage('REJ'), privateData: new Uint8Array(149) };
    assert.throws(() => codecOf('REJ').emit(message), {
      name: 'RangeError',
      message: 'REJ.privateData.length is 149; it must be at most 148',
    });
  });

  it('is a copy, not a window on a receive buffer', () => {
    const data = new Uint8Array(232).fill(7);
    const parsed = codecOf('RTU').parse(data);
    data.fill(0);
    assert.deepEqual(parsed?.['privateData'], new Uint8Array(224).fill(7));
  });

  it('drops lengths of additional information beyond its field', () => {
    for (const [name, byte, first] of [
      ['REJ', 9, 73 << 1],
      ['APR', 8, 73],
      ['SIDR_REP', 5, 73],
    ] as const) {
      const data = new Uint8Array(232);
      data[byte] = first;
      assert.equal(codecOf(name).parse(data), undefined, name);
      data[byte] = name === 'REJ' ? 72 << 1 : 72;
      assert.ok(codecOf(name).parse(data), name);
    }
  });
});
