import assert from 'node:assert/strict';

import fc from 'fast-check';

import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';

/** Reads everything that a reader gives, so that nothing is left to fail later. */
function touch(value: unknown): void {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return;
  for (let at: object = value; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const key of Object.getOwnPropertyNames(at)) {
      if (key !== 'constructor') touch((value as Record<string, unknown>)[key]);
    }
  }
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
const READERS: Readonly<Record<string, (bytes: Uint8Array) => unknown>> = {
  readInitiatorPdu: wire.readInitiatorPdu,
  readTargetPdu: wire.readTargetPdu,
  readAhs: wire.readAhs,
  readIserMessage: wire.readIserMessage,
  parseText: wire.parseText,
  readSense: wire.readSense,
  readSenseSegment: wire.readSenseSegment,
  readLuns: wire.readLuns,
  pduStream: (bytes) => new wire.PduStream(64).push(bytes),
  readKey: (bytes) => {
    const keys = Object.keys(wire.KEYS).filter(wire.isKeyName);
    return wire.readKey(keys[(bytes[0] ?? 0) % keys.length]!, text(bytes.subarray(1)));
  },
  checkName: (bytes) => wire.checkName('TargetName', text(bytes)),
  readChallenge: (bytes) => wire.readChallenge('1', text(bytes)),
  readResponse: (bytes) => wire.readResponse(text(bytes)),
};

/** Random bytes, most of them with the shape of what is read. */
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc
    .tuple(
      fc.constantFrom(
        ...Object.values(wire.INITIATOR_OPCODE),
        ...Object.values(wire.TARGET_OPCODE),
      ),
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: 0, max: 80 }),
      fc.uint8Array({ minLength: 48, maxLength: 160 }),
    )
    .map(([opcode, ahsWords, dataBytes, rest]) => {
      rest.set([opcode, rest[1]!, rest[2]!, rest[3]!, ahsWords, 0, 0, dataBytes]);
      return rest;
    }),
  fc
    .array(fc.tuple(fc.constantFrom('A', 'CHAP_C', '', 'é'), fc.string()), { maxLength: 5 })
    .map((pairs) => new TextEncoder().encode(pairs.map(([k, v]) => `${k}=${v}\0`).join(''))),
  fc
    .constantFrom('0x', '0b', 'iqn.2024-01.')
    .chain((start) =>
      fc.string({ maxLength: 40 }).map((rest) => new TextEncoder().encode(start + rest)),
    ),
);

describe('hostile bytes', () => {
  for (const [name, read] of Object.entries(READERS)) {
    it(`${name} reads them or throws a WireError`, () => {
      fc.assert(
        fc.property(bytes, (input) => {
          const before = input.slice();
          try {
            touch(read(input));
          } catch (error) {
            assert(error instanceof wire.WireError, String(error));
          }
          assert.deepEqual(input, before);
        }),
        { numRuns: 500 },
      );
    });
  }
});
