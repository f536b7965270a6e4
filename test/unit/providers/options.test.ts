/** Options of providers and modules: unknown names and values are refused, before all else. */
import assert from 'node:assert/strict';
import { DatError, openIa } from '../../../core/index.js';
import { type ConfiguredModule, silentLogger, SpiError } from '../../../core/spi/index.js';
import { cm } from '../../../plugins/cm/index.js';
import { mad } from '../../../plugins/mad/index.js';
import { xrc } from '../../../plugins/xrc/index.js';
import { Fabric, mock, MockNode } from '../../../providers/mock/index.js';
import { inspectSoftroce, softroce } from '../../../providers/softroce/index.js';
import { inspectVerbs, verbs } from '../../../providers/verbs/index.js';

const einval = (message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === 'EINVAL' && message.test(error.message);

/** What a plugin called `name` says: its name, the option, its value and what it may be. */
function invalid(name: string, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.equal(error.subtype, 'DAT_INVALID_ARG1');
    assert.equal(error.operation, name);
    assert.ok(error.message.startsWith(`${name}: `), error.message);
    assert.match(error.message.slice(name.length + 2), message);
    return true;
  };
}

const refusedBy =
  (name: string, plugin: (options: never) => unknown) =>
  (options: unknown, message: RegExp): void =>
    assert.throws(() => plugin(options as never), invalid(name, message));

describe('options of providers', () => {
  const addresses = ['127.0.0.1'];

  it('of softroce are refused by name, value and limit when it is configured', () => {
    const refused = refusedBy('softroce', softroce);
    refused(undefined, /^addresses is undefined; it must be a list of 1 to 64 local IP addresses/);
    refused(null, /^options is null; it must be an object /);
    refused({}, /^addresses is undefined; it must be a list of 1 to 64 local IP addresses/);
    refused({ addresses: [] }, /^addresses is an array of 0;/);
    refused({ addresses: new Array(65).fill('::1') }, /^addresses is an array of 65;/);
    refused({ addresses, upd: 1 }, /^an option is "upd"; it must be one of addresses, mtuBytes,/);
    refused({ addresses, udpport: 1 }, /^an option is "udpport"; .*: did you mean "udpPort"\? /);
    refused({ addresses, prot: 'dgram' }, /^an option is "prot"; .*: did you mean "port"\? /);
    refused({ addresses, udpPort: 0 }, /^udpPort is 0; it must be an integer from 1 to 65535 /);
    refused({ addresses, udpPort: 65536 }, /^udpPort is 65536;/);
    refused({ addresses, mtuBytes: 1500 }, /^mtuBytes is 1500; it must be one of 256, 512, 1024,/);
    refused({ addresses, port: 'raw' }, /^port is "raw"; it must be one of "auto", "native",/);
    refused({ addresses, port: 'natvie' }, /^port is "natvie"; .*: did you mean "native"\? /);
    refused({ addresses, port: 4792 }, /^port is 4792; .* \(the number of a UDP port is udpPort\)/);
    refused({ addresses, icrcCheck: 'no' }, /^icrcCheck is "no"; it must be one of "recovered",/);
    softroce({ addresses, udpPort: 65535, mtuBytes: 4096, port: 'dgram', icrcCheck: 'exact' });
  });

  it('of mock likewise', () => {
    const fabric = new Fabric();
    const refused = refusedBy('mock', mock);
    refused(undefined, /^fabric is undefined; it must be a Fabric: new Fabric\(/);
    refused({ address: '::1' }, /^fabric is undefined; it must be a Fabric:/);
    refused({ fabric: {}, address: '::1' }, /^fabric is an object; it must be a Fabric:/);
    refused({ fabric, address: '' }, /^address is ""; it must be a string that is not empty /);
    refused({ fabric, adress: '::1' }, /^an option is "adress"; .* did you mean "address"\? /);
    refused({ fabric, address: '::1', mtuBytes: 100 }, /^mtuBytes is 100; it must be one of 256,/);
    mock({ fabric, address: '::1', mtuBytes: 256 });
  });

  it('of verbs likewise', () => {
    const refused = refusedBy('verbs', verbs);
    refused({ devcie: 'rxe0' }, /^an option is "devcie"; .* did you mean "device"\? /);
    refused({ device: 'rxe0', address: '::1' }, /^device "rxe0" or address "::1", not both /);
    refused({ gidIndex: 1 }, /^gidIndex 1 is of a device: name that too /);
    refused({ address: '0.0.0.0' }, /^address is "0\.0\.0\.0"; it must be an IP address of one h/);
    refused({ libraries: { verb: 'x' } }, /^libraries: an option is "verb"; .* mean "verbs"\? /);
    verbs();
    verbs({ address: 'fe80::1%eth0' });
  });

  it('of modules likewise', () => {
    refusedBy('cm', cm)({ maxHalfopen: 5 }, /^an option is "maxHalfopen"; .* mean "maxHalfOpen"\?/);
    refusedBy('cm', cm)({ requestBurst: 1 }, /^requestBurst is 1; it must be an integer from 2 to/);
    refusedBy('mad', mad)(
      { sendDepth: 0 },
      /^sendDepth is 0; it must be an integer from 1 to 32768/,
    );
    refusedBy('mad', mad)(
      { rmpp: { max: 1 } },
      /^rmpp: an option is "max"; .*: did you mean "maxTran/,
    );
    refusedBy('mad', mad)({ rmpp: { maxTransfers: 0 } }, /^rmpp: maxTransfers is 0; it must be an/);
    refusedBy('xrc', xrc)({ key: 1 }, /^an option is "key"; it must be left out: there are none /);
    for (const module of [cm(), mad(), xrc(), cm({}), mad({ rmpp: {} }), xrc({})]) {
      assert.ok((module as ConfiguredModule).meta.name);
    }
  });

  it('are those of what looks at a machine, too', async () => {
    const port = inspectSoftroce('x' as never);
    await assert.rejects(
      port,
      invalid('inspectSoftroce', /^udpPort is "x"; it must be an integer/),
    );
    const device = inspectVerbs({ device: '' });
    await assert.rejects(
      device,
      invalid('inspectVerbs', /^device is ""; it must be a string that/),
    );
  });
});

describe('addresses of a device', () => {
  const rows: readonly (readonly [unknown[], RegExp])[] = [
    [
      ['0.0.0.0'],
      /^one of addresses is "0\.0\.0\.0"; .* one interface: this one stands for all of/,
    ],
    [['::'], /^one of addresses is "::"; .* one interface: this one stands for all of them, and/],
    [['10.0.0.1', '::ffff:0.0.0.0'], /^one of addresses is "0\.0\.0\.0";/],
    [
      ['224.0.0.1'],
      /^one of addresses is "224\.0\.0\.1"; .* one interface: this one is of a group/,
    ],
    [['ff02::1'], /^one of addresses is "ff02::1"; .* one interface: this one is of a group/],
    [['255.255.255.255'], /^one of addresses is "255\.255\.255\.255"; .* \(broadcast\)/],
    [
      ['localhost'],
      /^one of addresses is "localhost"; it must be an (IP )?address, or an? (GID|interface)/,
    ],
    [[7], /^one of addresses is 7; it must be an IP address, or a GID of 16 bytes/],
    [['10.0.0.1', '10.0.0.1'], /^one of addresses is "10\.0\.0\.1"; it must be given once/],
  ];
  for (const [addresses, message] of rows) {
    it(`are not ${JSON.stringify(addresses)}`, () => {
      refusedBy('softroce', softroce)({ addresses }, message);
      const fabric = new Fabric();
      assert.throws(() => fabric.openPort({ addresses } as never), einval(message));
      if (addresses.length > 1 || typeof addresses[0] !== 'string') return;
      refusedBy('mock', mock)({ fabric, address: addresses[0] }, message);
    });
  }
});

describe('parameters of the software HCA', () => {
  const addresses = ['127.0.0.1'];
  const RANGES: Readonly<Record<string, readonly [least: number, most: number]>> = {
    windowPackets: [2, 2 ** 20],
    burstPackets: [1, 1024],
    minAckTimeoutUs: [0, 60_000_000],
    unreachableRetryUs: [0, 60_000_000],
    maxSge: [1, 255],
    maxInlineBytes: [0, 4096],
    maxResponderResources: [0, 255],
    maxInitiatorDepth: [0, 255],
    maxQueuePairWr: [512, 2 ** 20],
    maxQueuePairs: [2, 2 ** 20],
  };

  for (const [name, [least, most]] of Object.entries(RANGES)) {
    it(`${name} is an integer from ${least} to ${most}`, () => {
      const refused = refusedBy('softroce', softroce);
      const range = new RegExp(`^parameters: ${name} is .* an integer from ${least} to ${most} `);
      for (const value of [least - 1, most + 1, least + 0.5, NaN, Infinity, '64', null, 64n]) {
        refused({ addresses, parameters: { [name]: value } }, range);
      }
      const fabric = new Fabric();
      const address = '10.0.0.1';
      refusedBy('mock', mock)({ fabric, address, parameters: { [name]: -1 } }, range);
      for (const value of [least, most, undefined]) {
        softroce({ addresses, parameters: { [name]: value } });
      }
    });
  }

  it('agreements is a boolean', () => {
    const refused = refusedBy('softroce', softroce);
    const text = /^parameters: agreements is 1; it must be a boolean /;
    refused({ addresses, parameters: { agreements: 1 } }, text);
  });

  it('have known names, also for a node that is made by hand', () => {
    const fabric = new Fabric();
    const open = (parameters: object): MockNode =>
      new MockNode(fabric, { addresses: ['10.0.0.1'], logger: silentLogger, parameters });
    const misspelt =
      /^parameters: an option is "windowPacket"; .*: did you mean "windowPackets"\?$/;
    assert.throws(() => open({ windowPacket: 1 }), einval(misspelt));
    assert.throws(() => open({ burstPackets: 0 }), einval(/^parameters: burstPackets is 0;/));
    // Nothing was left open by these.
    assert.equal(open({ windowPackets: 9 }).device.hca.parameters.windowPackets, 9);
    const text = /^an option is "nmae"; .*: did you mean "name"\?$/;
    const named = { addresses: ['10.0.0.2'], nmae: 'x' } as never;
    assert.throws(() => new MockNode(fabric, named), einval(text));
  });

  it('that are undefined have their defaults', async () => {
    const fabric = new Fabric({ autoRun: true });
    const parameters = { maxSge: undefined } as never;
    const ia = await openIa(mock({ fabric, address: '10.0.0.1', parameters }));
    assert.equal(fabric.node('10.0.0.1')?.device.attributes.maxSge, 16);
    await ia.close();
  });
});

describe('options of a fabric', () => {
  const fabric = new Fabric();
  const refused = (call: () => unknown, message: RegExp): void =>
    assert.throws(call, (error) => {
      assert.ok(error instanceof RangeError, String(error));
      assert.match(error.message, message);
      return true;
    });

  it('have known names, and values within their limits', () => {
    refused(() => new Fabric({ sede: 1 } as never), /^an option is "sede"; .* mean "seed"\?$/);
    refused(() => new Fabric({ autoRun: 'pace' } as never), /^autoRun is "pace"; .* "paced"\?$/);
    refused(() => new Fabric({ startUs: -1 }), /^startUs is -1; it must be a number from 0/);
    refused(() => new Fabric({ seed: 0.5 }), /^seed is 0\.5;/);
    refused(() => new Fabric(7 as never), /^options is 7; it must be an object$/);
  });

  it('of links likewise', () => {
    refused(() => fabric.setLink({}, { loss: 1 } as never), /^an option is "loss"; .* bandwidth,/);
    const lower = { losspercent: 5 } as never;
    refused(() => fabric.setLink({}, lower), /"losspercent"; .*: did you mean "lossPercent"\?$/);
    refused(() => new Fabric({ link: lower }), /"losspercent"; .*: did you mean "lossPercent"\?$/);
    refused(() => fabric.setLink({}, { latencyMinUs: -1 }), /^latencyMinUs is -1; .* from 0 to/);
    refused(
      () => fabric.setLink({}, { latencyMinUs: 9, latencyMeanUs: 8 }),
      /^latencyMeanUs is 8; it must be at least 9, latencyMinUs$/,
    );
    refused(() => fabric.setLink({}, { bandwidth: 0.5 }), /^bandwidth is 0\.5; .* from 1 on$/);
    refused(() => fabric.setLink({}, { reorderDelayUs: Infinity }), /^reorderDelayUs is Infinity;/);
    refused(
      () => fabric.setLink({ form: '::1' } as never, {}),
      /"form"; .* did you mean "from"\?$/,
    );
    refused(() => fabric.heal({ to: '::FFFF' }), /^heal: to is "::FFFF"; .* in its usual text/);
    refused(
      () => fabric.setBottleneck('x', { bandwidth: 1, queueBytes: 1 }),
      /^to is "x"; it must/,
    );
    refused(
      () => fabric.partition(['x'], ['::1']),
      /^side is an array of 1; .* list of IP address/,
    );
    refused(() => fabric.partition([], [], 'in' as never), /^direction is "in"; .* "both", "out"$/);
  });

  it('of running likewise', async () => {
    const rejected = (options: unknown, message: RegExp): Promise<void> =>
      assert.rejects(fabric.run(options as never), (error) => {
        assert.ok(error instanceof RangeError, String(error));
        assert.match(error.message, message);
        return true;
      });
    await rejected(undefined, /^options is undefined; it must be an object$/);
    await rejected({}, /^options is an object; .* one of untilIdle, forUs, until$/);
    await rejected({ forMs: 1 }, /^an option is "forMs"; .*: did you mean "forUs"\?$/);
    await rejected({ forUs: NaN }, /^forUs is NaN; it must be a number from 0/);
    await rejected({ until: true }, /^until is true; it must be a function$/);
    await rejected({ untilIdle: true, forUs: 1 }, /^options is an object; .* one of untilIdle,/);
  });
});
