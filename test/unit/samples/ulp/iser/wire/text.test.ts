import assert from 'node:assert/strict';

import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const refused = (message: string | RegExp) => ({ name: 'WireError', fault: 'text', message });

describe('iSCSI text', () => {
  it('pairs are ended by a NUL, in order, and may come again', () => {
    const pairs = [
      ['TargetName', 'iqn.2024-01.io.test:a'],
      ['TargetAddress', '[fe80::1]:3260,1'],
      ['TargetName', 'iqn.2024-01.io.test:b=c'],
      ['SendTargets', ''],
    ] as const;
    const text = wire.emitText(pairs);
    assert.equal(
      new TextDecoder().decode(text),
      'TargetName=iqn.2024-01.io.test:a\0TargetAddress=[fe80::1]:3260,1\0' +
        'TargetName=iqn.2024-01.io.test:b=c\0SendTargets=\0',
    );
    assert.deepEqual(wire.parseText(text), pairs);
    assert.throws(() => wire.uniqueKeys(pairs), refused('key is "TargetName", must be there once'));
  });

  it('NULs that fill the text up are no pairs', () => {
    assert.deepEqual(wire.parseText(bytes('A=1\0\0\0')), [['A', '1']]);
    assert.deepEqual(wire.parseText(bytes('')), []);
  });

  it('what is no list of pairs is refused', () => {
    assert.throws(
      () => wire.parseText(bytes('A=1\0B=2')),
      /last byte of the text is 50, must be 0/,
    );
    assert.throws(() => wire.parseText(bytes('A\0')), refused('pair is "A", must be key=value'));
    assert.throws(() => wire.parseText(bytes('=1\0')), refused(/key is ""/));
    assert.throws(() => wire.parseText(bytes('A B=1\0')), refused(/key is "A B"/));
    assert.throws(() => wire.parseText(bytes(`${'K'.repeat(64)}=1\0`)), refused(/at most 63/));
    assert.throws(() => wire.parseText(Uint8Array.of(0x41, 0x3d, 0xff, 0)), refused(/UTF-8/));
  });

  it('a value has 255 bytes at most, one of CHAP more', () => {
    assert.equal(wire.parseText(bytes(`A=${'x'.repeat(255)}\0`)).length, 1);
    assert.throws(
      () => wire.parseText(bytes(`A=${'x'.repeat(256)}\0`)),
      refused('bytes of A is 256, must be at most 255'),
    );
    const longest = `0x${'ab'.repeat(1024)}`;
    assert.deepEqual(wire.parseText(bytes(`CHAP_C=${longest}\0`)), [['CHAP_C', longest]]);
    assert.throws(() => wire.parseText(bytes(`CHAP_C=${longest}0\0`)), refused(/2051/));
  });

  it('what cannot be sent is refused before it is', () => {
    assert.throws(() => wire.emitText([['A', 'x\0y']]), RangeError);
    assert.throws(() => wire.emitText([['A B', '']]), RangeError);
    assert.throws(() => wire.emitText([['A', 'é'.repeat(128)]]), /256 bytes, must have 255/);
  });

  it('is cut into parts for PDUs, and put together up to a limit', () => {
    const text = wire.emitText([['A', 'x'.repeat(100)]]);
    const parts = wire.textParts(text, 50);
    assert.deepEqual(
      parts.map((part) => part.length),
      [50, 50, 3],
    );
    const assembly = new wire.TextAssembly(103);
    assert.equal(assembly.add(parts[0]!, false), undefined);
    assert.equal(assembly.isOpen, true);
    assert.equal(assembly.add(parts[1]!, false), undefined);
    assert.deepEqual(assembly.add(parts[2]!, true), text);
    assert.equal(assembly.isOpen, false);
    assert.throws(() => assembly.add(new Uint8Array(104), true), /is 104, must be at most 103/);
    assert.deepEqual(wire.textParts(new Uint8Array(0), 50), [new Uint8Array(0)]);
  });
});

describe('values of keys', () => {
  it('numbers are decimal or hex, within their range', () => {
    assert.equal(wire.readNumber('A', '512', 512, 1024), 512);
    assert.equal(wire.readNumber('A', '0x2aA', 512, 1024), 682);
    for (const value of ['511', '1025', '', ' 600', '600 ', '6e2', '0600', '-1', '0x', '600.0']) {
      assert.throws(() => wire.readNumber('A', value, 512, 1024), refused(/must be 512 to 1024/));
    }
  });

  it('binary values are hex or base64', () => {
    assert.deepEqual(wire.readBinary('A', '0x0aFF', 1, 2), Uint8Array.of(10, 255));
    assert.deepEqual(wire.readBinary('A', '0xaff', 1, 2), Uint8Array.of(10, 255));
    assert.deepEqual(wire.readBinary('A', '0bCv8=', 1, 2), Uint8Array.of(10, 255));
    for (const value of ['0x', '0x0g', '0bCv8', '0b====', 'Cv8=', '0x0102ff', '']) {
      assert.throws(() => wire.readBinary('A', value, 1, 2), refused(/of 1 to 2 bytes/));
    }
    assert.equal(wire.emitBinary(Uint8Array.of(10, 255)), '0x0aff');
  });

  for (const [key, own, peers, outcome] of [
    ['ImmediateData', 'Yes', 'Yes', 'Yes'],
    ['ImmediateData', 'No', 'Yes', 'No'],
    ['InitialR2T', 'No', 'Yes', 'Yes'],
    ['InitialR2T', 'No', 'No', 'No'],
    ['RDMAExtensions', 'Yes', 'No', 'No'],
    ['MaxBurstLength', '262144', '16776192', '262144'],
    ['DefaultTime2Wait', '2', '0', '2'],
    ['DefaultTime2Retain', '20', '0', '0'],
    ['HeaderDigest', 'None', 'CRC32C,None', 'None'],
    ['HeaderDigest', 'None', 'CRC32C', 'Reject'],
    ['AuthMethod', 'CHAP,None', 'None,CHAP', 'None'],
  ] as const) {
    it(`${key}: ${own} here and ${peers} there end with ${outcome}`, () => {
      assert.equal(wire.agree(key, own, peers), outcome);
    });
  }

  it('a value that a key cannot have is refused', () => {
    assert.throws(() => wire.readKey('InitialR2T', 'yes'), refused(/must be Yes or No/));
    assert.throws(() => wire.readKey('MaxBurstLength', '16777216'), refused(/512 to 16777215/));
    assert.throws(() => wire.agree('TargetAlias', 'a', 'b'), RangeError);
    assert.equal(wire.isKeyName('toString'), false);
  });

  it('names are iqn, eui or naa', () => {
    for (const name of [
      'iqn.2024-01.io.test:disk0',
      'eui.02004567A425678D',
      'naa.52004567BA64678D',
    ]) {
      assert.equal(wire.checkName('TargetName', name), name);
    }
    for (const name of [
      '',
      'disk0',
      'iqn.2024.io',
      'iqn.2024-01.',
      `iqn.2024-01.${'a'.repeat(212)}`,
    ]) {
      assert.throws(() => wire.checkName('TargetName', name), refused(/^TargetName is/));
    }
  });
});
