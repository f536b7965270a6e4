/** Options of providers and of faults: unknown names and values are refused, before all else. */
import assert from 'node:assert/strict';
import { silentLogger, SpiError, WcStatus } from '../../../core/spi/index.js';
import { Fabric, mock, MockNode } from '../../../providers/mock/index.js';
import { softroce } from '../../../providers/softroce/index.js';

const einval = (message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === 'EINVAL' && message.test(error.message);

describe('options of providers', () => {
  it('of softroce are refused by name, value and limit when it is configured', () => {
    const refused = (options: unknown, message: RegExp): void =>
      assert.throws(() => softroce(options as never), einval(message));
    const addresses = ['127.0.0.1'];
    refused(undefined, /^options is undefined; it must be an object$/);
    refused({}, /^addresses is undefined; it must be a list of 1 to 64 local IP addresses/);
    refused({ addresses: [] }, /^addresses is an array of 0;/);
    refused({ addresses: new Array(65).fill('::1') }, /^addresses is an array of 65;/);
    refused({ addresses, upd: 1 }, /^an option is "upd"; it must be one of addresses, mtuBytes,/);
    refused({ addresses, udpPort: 0 }, /^udpPort is 0; it must be an integer from 1 to 65535$/);
    refused({ addresses, udpPort: 65536 }, /^udpPort is 65536;/);
    refused({ addresses, mtuBytes: 1500 }, /^mtuBytes is 1500; it must be one of 256, 512, 1024,/);
    refused({ addresses, port: 'raw' }, /^port is "raw"; it must be one of "auto", "native",/);
    refused({ addresses, icrcCheck: 'no' }, /^icrcCheck is "no"; it must be one of "recovered",/);
    refused({ addresses, parameters: 7 }, /^parameters is 7; it must be an object$/);
    softroce({ addresses, udpPort: 65535, mtuBytes: 4096, port: 'dgram', icrcCheck: 'exact' });
  });

  it('of mock likewise', () => {
    const fabric = new Fabric();
    const refused = (options: unknown, message: RegExp): void =>
      assert.throws(() => mock(options as never), einval(message));
    refused({ address: '::1' }, /^fabric is undefined; it must be an object$/);
    refused({ fabric, address: '' }, /^address is ""; it must be a string that is not empty$/);
    refused({ fabric, address: '::1', mtu: 1024 }, /^an option is "mtu";/);
    refused({ fabric, address: '::1', mtuBytes: 100 }, /^mtuBytes is 100; it must be one of 256,/);
    mock({ fabric, address: '::1', mtuBytes: 256 });
  });

  it('that are parameters of the software HCA have known names', () => {
    const fabric = new Fabric();
    const addresses = ['10.0.0.1'];
    const port = fabric.openPort({ addresses });
    const open = (parameters: object): MockNode =>
      new MockNode(fabric, { addresses, port, logger: silentLogger, parameters });
    assert.throws(
      () => open({ windowPacket: 1 }),
      einval(/^an option is "windowPacket"; it must be one of windowPackets, burstPackets,/),
    );
    assert.equal(open({ windowPackets: 9 }).device.hca.parameters.windowPackets, 9);
  });
});

describe('options of links and faults', () => {
  const fabric = new Fabric();
  const refused = (call: () => unknown, message: RegExp): void =>
    assert.throws(call, (error) => error instanceof RangeError && message.test(error.message));
  const action = { type: 'drop' } as const;

  it('have known names', () => {
    refused(() => fabric.setLink({}, { loss: 1 } as never), /^an option is "loss"; .* bandwidth,/);
    refused(
      () => fabric.faults.add({ match: { form: '::1' } as never, action }),
      /^an option is "form"; it must be one of from, to, opcode,/,
    );
    refused(
      () => fabric.faults.add({ match: {}, action, nht: 2 } as never),
      /^an option is "nht"; it must be one of match, action, nth, count$/,
    );
  });

  it('have values within their limits', () => {
    refused(() => fabric.setLink({}, { latencyMinUs: -1 }), /^latencyMinUs is -1; .* from 0 on$/);
    refused(
      () => fabric.setLink({}, { latencyMinUs: 9, latencyMeanUs: 8 }),
      /^latencyMeanUs is 8; it must be at least 9, latencyMinUs$/,
    );
    refused(() => fabric.faults.add({ match: {}, action, nth: 0 }), /^nth is 0; .* from 1 on$/);
    refused(() => fabric.faults.add({ match: {}, action, count: -1 }), /^count is -1; .* 0 on$/);
    assert.equal(fabric.faults.add({ match: {}, action, nth: 1, count: Infinity }).hits, 0);
  });

  it('of sends likewise', () => {
    const addresses = ['10.0.0.2'];
    const port = fabric.openPort({ addresses });
    const node = new MockNode(fabric, { addresses, port, logger: silentLogger, parameters: {} });
    const fail = (status: number, nth: number) => () => node.failSend({ status, nth } as never);
    refused(fail(WcStatus.SUCCESS, 1), /^status is 0; it must be that of a failure$/);
    refused(() => node.failSend({ status: 1, qp: 2 } as never), /^an option is "qp";/);
    refused(fail(WcStatus.RETRY_EXC_ERR, 0), /^nth is 0; it must be an integer from 1 on$/);
  });
});
