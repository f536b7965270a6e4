import assert from 'node:assert/strict';
import { newPortCounters, PORT_COUNTERS, readIaParams } from 'dapl/spi';

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
