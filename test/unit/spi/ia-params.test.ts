import assert from 'node:assert/strict';
import { integerOption, newPortCounters, PORT_COUNTERS, readIaParams } from 'dapl/spi';

describe('ia_params', () => {
  it('name the options that there are, or say that there are none', () => {
    assert.throws(() => readIaParams('card0 mtu=3', ['mtuBytes']), {
      code: 'EINVAL',
      message: 'ia_params "mtu=3": options are mtuBytes: did you mean "mtuBytes"?',
    });
    assert.throws(() => readIaParams('card0 mtu=3', []), {
      code: 'EINVAL',
      message: 'ia_params "mtu=3": there are no options',
    });
  });

  it('give options as properties: those that are given, and no others', () => {
    const params = readIaParams('eth0 0 port=native toString=2', ['port', 'toString', 'valueOf']);
    const { words, options } = params;
    assert.deepEqual(words, ['eth0', '0']);
    assert.deepEqual({ ...options }, { port: 'native', toString: '2' });
    assert.equal(options.port, 'native');
    assert.equal(options.valueOf, undefined);
    assert.equal(integerOption(params, 'toString'), 2);
    assert.equal(integerOption(params, 'valueOf'), undefined);
    assert.equal(Object.isFrozen(options), true);
    assert.throws(() => readIaParams('port=a port=b', ['port']), /port is given twice/);
    assert.throws(() => readIaParams('port=a eth0', ['port']), /words come before options/);
  });
});

describe('Counters of a packet port', () => {
  it('are all there, at 0, and each port has its own', () => {
    const counters = newPortCounters();
    assert.deepEqual(
      Object.entries(counters),
      PORT_COUNTERS.map((name) => [name, 0]),
    );
    counters.badIcrc++;
    assert.equal(newPortCounters().badIcrc, 0);
  });
});
