import assert from 'node:assert/strict';
import { nearest } from '../../../core/spi/checks/index.js';

const KNOWN = ['addresses', 'udpPort', 'port', 'mtuBytes', 'icrcCheck', 'drop', 'delay'];

describe('the known word that is meant', () => {
  const rows: readonly (readonly [word: string, meant: string | undefined])[] = [
    ['udpport', 'udpPort'],
    ['UDPPORT', 'udpPort'],
    ['udpPrt', 'udpPort'],
    ['udpPoort', 'udpPort'],
    ['upd_port', 'udpPort'],
    ['prot', 'port'],
    ['pot', 'port'],
    ['dorp', 'drop'],
    ['dealy', 'delay'],
    ['mtu', 'mtuBytes'],
    ['addr', 'addresses'],
    ['icrccheck', 'icrcCheck'],
    ['a', undefined],
    ['', undefined],
    ['drip it', undefined],
    ['NONSENSE', undefined],
    ['x'.repeat(1e6), undefined],
  ];
  for (const [word, meant] of rows) {
    it(`of ${JSON.stringify(word.slice(0, 20))} is ${meant ?? 'none'}`, () => {
      assert.equal(nearest(word, KNOWN), meant);
    });
  }

  it('is the nearest of several, of equals the first', () => {
    assert.equal(nearest('ports', ['parts', 'port', 'sport']), 'parts');
    assert.equal(nearest('port', ['ports', 'Port']), 'Port');
    assert.equal(nearest('port', []), undefined);
  });
});
