/** Who gets a request, and what an agent may register for. */
import assert from 'node:assert/strict';
import { type MadAgentOptions, SpiError } from '../../../core/spi/index.js';
import { MethodTable } from '../../../plugins/mad/provider.js';
import { VENDOR_CLASS } from '../../support/mad-pair.js';

const OUI_CLASS = 0x32;
const OUIS_OF_A_CLASS = 8;

function optionsOf(overrides: Partial<MadAgentOptions> = {}): MadAgentOptions {
  return {
    managementClass: VENDOR_CLASS,
    classVersion: 1,
    methods: [1],
    onReceive: () => undefined,
    onSend: () => undefined,
    ...overrides,
  };
}

const ofOui = (oui: number, methods = [1]): MadAgentOptions =>
  optionsOf({ managementClass: OUI_CLASS, oui, methods });

function invalid(message: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof SpiError && error.code === 'EINVAL' && message.test(error.message);
}

function refuses(overrides: Partial<MadAgentOptions>, message: RegExp): void {
  assert.throws(() => new MethodTable().check(optionsOf(overrides)), invalid(message));
}

describe('MAD: the table of methods', () => {
  it('takes the least and the greatest class, version, method and OUI, and no more', () => {
    const taken: Partial<MadAgentOptions>[] = [
      { managementClass: 2 },
      { managementClass: 255 },
      { classVersion: 0 },
      { classVersion: 0x82 },
      { methods: [0, 127] },
      { managementClass: 0x30, oui: 1 },
      { managementClass: 0x4f, oui: 0xffffff },
      { managementClass: 0x30, oui: 1, rmpp: true },
    ];
    for (const overrides of taken) new MethodTable().check(optionsOf(overrides));
    refuses({ managementClass: 2.5 }, /managementClass is 2\.5;/);
    refuses({ classVersion: -1 }, /classVersion is -1;/);
    refuses({ methods: [-1] }, /method is -1;/);
    refuses({ managementClass: 0x30, oui: 0 }, /oui is 0;/);
    refuses({ managementClass: 0x30, oui: 0x1000000 }, /oui is 16777216;/);
  });

  it('has no RMPP for a class without it, and takes an agent there that wants none', () => {
    const table = new MethodTable<string>();
    assert.throws(
      () => table.check(optionsOf({ rmpp: true })),
      invalid(/rmpp is true; it must be false/),
    );
    table.check(optionsOf({ rmpp: false }));
  });

  it('finds an owner by version, class and method, whatever the OUI bytes are', () => {
    const table = new MethodTable<string>();
    table.add(optionsOf({ methods: [1, 2] }), 'first');
    table.add(optionsOf({ classVersion: 2, methods: [1] }), 'second');
    assert.equal(table.find(1, VENDOR_CLASS, 0, 1), 'first');
    assert.equal(table.find(1, VENDOR_CLASS, 0xabcdef, 2), 'first');
    assert.equal(table.find(2, VENDOR_CLASS, 0, 1), 'second');
    assert.equal(table.find(2, VENDOR_CLASS, 0, 2), undefined);
    assert.equal(table.find(1, VENDOR_CLASS + 1, 0, 1), undefined);
  });

  it('enters nothing of a registration that it refuses', () => {
    const table = new MethodTable<string>();
    table.add(optionsOf({ methods: [2] }), 'first');
    assert.throws(() => table.add(optionsOf({ methods: [1, 2] }), 'late'), invalid(/method 0x2/));
    assert.equal(table.find(1, VENDOR_CLASS, 0, 1), undefined);
    assert.equal(table.find(1, VENDOR_CLASS, 0, 2), 'first');
  });

  it('has eight OUIs to a class; one that leaves makes room, as its last method leaves', () => {
    const table = new MethodTable<string>();
    const full = invalid(/class 0x32 version 1 of OUI 0x9: 8 OUIs/);
    for (let oui = 1; oui <= OUIS_OF_A_CLASS; oui++) table.add(ofOui(oui), String(oui));
    assert.throws(() => table.add(ofOui(9), '9'), full);
    // An OUI that is there already has room, and so has another class or an agent without methods.
    table.add(ofOui(3, [2]), 'three, too');
    table.add(ofOui(9, []), 'silent');
    table.add({ ...ofOui(9), managementClass: OUI_CLASS + 1 }, 'elsewhere');
    table.remove(ofOui(3, [2]));
    assert.throws(() => table.add(ofOui(9), '9'), full);
    table.remove(ofOui(3));
    table.add(ofOui(9), '9');
    assert.equal(table.find(1, OUI_CLASS, 9, 1), '9');
    assert.equal(table.find(1, OUI_CLASS, 3, 1), undefined);
    assert.equal(table.find(1, OUI_CLASS, 4, 1), '4');
  });

  it('keeps the others when one leaves, and counts no agent without methods', () => {
    const table = new MethodTable<string>();
    for (let oui = 1; oui <= 20; oui++) table.add(ofOui(oui, []), 'silent');
    table.remove(ofOui(1, []));
    for (let oui = 1; oui <= OUIS_OF_A_CLASS; oui++) table.add(ofOui(oui, [1, 2]), String(oui));
    table.add(ofOui(1, [3]), 'one, too');
    table.remove(ofOui(1, [1, 2]));
    assert.equal(table.find(1, OUI_CLASS, 1, 1), undefined);
    table.remove(ofOui(20, []));
    assert.equal(table.find(1, OUI_CLASS, 1, 3), 'one, too');
    assert.equal(table.find(1, OUI_CLASS, 2, 2), '2');
  });
});
