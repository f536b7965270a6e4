import assert from 'node:assert/strict';
import { SpiError } from '../../../core/spi/index.js';
import { checkOptions } from '../../../providers/verbs/opening/options.js';
import { optionsOf } from '../../../providers/verbs/opening/provider-init.js';

function refuses(call: () => unknown, says: RegExp): void {
  assert.throws(call, (error) => {
    assert.ok(error instanceof SpiError, String(error));
    assert.equal(error.code, 'EINVAL');
    assert.match(error.message, says);
    return true;
  });
}

describe('verbs: options', () => {
  for (const options of [
    undefined,
    {},
    { device: 'mlx5_0', port: 2, gidIndex: 0 },
    { address: '10.0.0.1', polling: 'adaptive' },
    { libraries: { verbs: '/opt/lib/libibverbs.so.1', rdmacm: '/opt/lib/librdmacm.so.1' } },
  ]) {
    it(`takes ${JSON.stringify(options)}`, () => {
      assert.deepEqual(checkOptions(options), options ?? {});
    });
  }

  const refused: readonly (readonly [unknown, RegExp])[] = [
    [null, /options is null; it must be an object/],
    ['rxe0', /options is "rxe0"; it must be an object/],
    [{ devcie: 'rxe0' }, /option is "devcie"; it must be one of device, address, port/],
    [{ device: '' }, /device is ""; it must be a string that is not empty/],
    [{ address: 1 }, /address is 1; it must be an IP address of one host, in text/],
    [{ address: '::' }, /address is "::"; it must be an IP address of one host/],
    [{ address: '224.0.0.1' }, /address is "224\.0\.0\.1"; it must be an IP address of one/],
    [{ port: 1 }, /port 1 is of a device: name that too/],
    [{ device: 'rxe0', port: 0 }, /port is 0; it must be an integer from 1 to 255/],
    [{ device: 'rxe0', port: 1.5 }, /port is 1\.5; it must be/],
    [{ device: 'rxe0', gidIndex: -1 }, /gidIndex is -1; it must be an integer from 0 to 255/],
    [{ device: 'rxe0', gidIndex: 256 }, /gidIndex is 256; it must be/],
    [{ polling: 'spin' }, /polling is "spin"; it must be one of "event", "adaptive"/],
    [{ libraries: 'x' }, /libraries is "x"; it must be an object/],
    [
      { libraries: { ibverbs: 'x' } },
      /libraries: an option is "ibverbs"; it must be one of verbs, rdmacm, umad/,
    ],
    [{ libraries: { verbs: '' } }, /libraries: verbs is ""; it must be a string/],
  ];
  for (const [options, says] of refused) {
    it(`refuses ${JSON.stringify(options)}`, () => refuses(() => checkOptions(options), says));
  }
});

describe('verbs: lines of dat.conf', () => {
  const taken: readonly (readonly [string, object])[] = [
    ['eth0 0', { device: 'eth0' }],
    ['mlx5_0 1', { device: 'mlx5_0', port: 1 }],
    ['rxe0', { device: 'rxe0' }],
    ['10.77.0.2 0', { address: '10.77.0.2' }],
    ['fd77::2', { address: 'fd77::2' }],
    ['fe80::1%eth0', { address: 'fe80::1%eth0' }],
    [
      'mlx5_0 2 gidIndex=3 polling=adaptive',
      { device: 'mlx5_0', port: 2, gidIndex: 3, polling: 'adaptive' },
    ],
  ];
  for (const [text, options] of taken) {
    it(`"${text}"`, () => assert.deepEqual(optionsOf(text), options));
  }

  const refused: readonly (readonly [string, RegExp])[] = [
    ['', /a device, an interface or an address/],
    ['mlx5_0 1 2', /a device, an interface or an address/],
    ['mlx5_0 one', /port is "one"; it must be a number, 0 for any/],
    ['mlx5_0 300', /port is 300; it must be an integer from 1 to 255/],
    ['mlx5_0 gid=1', /options are gidIndex, polling/],
    ['mlx5_0 polling=spin', /polling is "spin"; it must be one of "event", "adaptive"/],
  ];
  for (const [text, says] of refused) {
    it(`refuses "${text}"`, () => refuses(() => optionsOf(text), says));
  }
});
