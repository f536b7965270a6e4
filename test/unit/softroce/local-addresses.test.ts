// Names of network interfaces stand for their addresses, in code as in dat.conf.

import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { DatError, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { testPort } from '../../support/loopback.js';
import { localAddresses } from '../../../providers/softroce/port/local-addresses.js';
import { optionsOf } from '../../../providers/softroce/instance.js';

const [LOOPBACK = ''] = Object.entries(networkInterfaces())
  .filter(([, list = []]) => list.some(({ address }) => address === '127.0.0.1'))
  .map(([name]) => name);
const OWN = (networkInterfaces()[LOOPBACK] ?? [])
  .filter(({ address }) => !/^fe80:/i.test(address))
  .map(({ address }) => address);

describe('addresses of softroce', () => {
  it('may be interfaces: all that they have, IPv4 first, each once', () => {
    const found = localAddresses('addresses', [LOOPBACK]);
    assert.deepEqual([...found].sort(), [...OWN].sort());
    assert.equal(found[0], '127.0.0.1');
    const mixed = localAddresses('addresses', ['127.0.0.9', LOOPBACK, '127.0.0.1']);
    assert.deepEqual(mixed, ['127.0.0.9', ...found]);
    assert.deepEqual(optionsOf(`127.0.0.9,${LOOPBACK}`).addresses, mixed);
    assert.equal(
      softroce({ addresses: [LOOPBACK] }).instance.deviceKey,
      softroce({ addresses: found }).instance.deviceKey,
    );
  });

  it('open by the name', async () => {
    const udpPort = testPort(33);
    const ia = await openIa(softroce({ addresses: [LOOPBACK], udpPort, port: 'dgram' }));
    assert.equal(ia.address, '127.0.0.1');
    await ia.close();
  });

  it('of no interface that is here are refused with those that are', () => {
    const text = 'is "eht0"; it must be an address, or an interface: one of ';
    const refused = (error: unknown): boolean =>
      DatError.isDatError(error) &&
      error.code === 'DAT_INVALID_PARAMETER' &&
      error.message.startsWith(`softroce: one of addresses ${text}`) &&
      error.message.includes(LOOPBACK);
    assert.throws(() => softroce({ addresses: ['eht0'] }), refused);
    assert.throws(() => softroce({ addresses: ['toString'] }), DatError);
  });
});
