// The device: what it says of itself, its ends, several of them, and threads.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { Worker } from 'node:worker_threads';
import { AsyncEventType, QpState } from '../../../core/spi/wire/ib.js';
import { ipFromGid } from '../../../core/spi/wire/address.js';
import { silentLogger } from '../../../core/spi/plugin/logger.js';
import { VerbsDevice, type VerbsDeviceOptions } from '../../../providers/verbs/device.js';
import { Feature, fakeVerbs, GidType } from '../../fake-verbs/control.js';
import { addonOverFake, Pair } from '../../fake-verbs/pair.js';
import { drain, postSends } from '../../fake-verbs/work.js';

const { EIO, EMFILE } = constants.errno;

describe('verbs: devices', () => {
  const fake = fakeVerbs();
  const open = (options: Partial<VerbsDeviceOptions> = {}): VerbsDevice =>
    new VerbsDevice({ addon: addonOverFake(), name: 'fake0', logger: silentLogger, ...options });

  beforeEach(() => fake.restore());
  afterEach(() => {
    fake.clearInjections();
    fake.restore();
    assert.equal(fake.objects(), 0, 'nothing is left open');
  });

  it('lists the devices of the library', () => {
    assert.deepEqual(addonOverFake().listDevices(), ['fake0', 'fake1']);
  });

  it('says what library is missing, and what a library has not', () => {
    const addon = addonOverFake();
    assert.match(addon.load('verbs', '/no/such.so') ?? '', /no\/such\.so: .* is loaded already/);
    assert.match(addon.load('rdmacm', '/no/such.so') ?? '', /such\.so/);
    assert.equal(addon.load('nonsense' as never), 'no library is called nonsense');
  });

  it('has the attributes of the device and of its port', async () => {
    const device = open();
    const { attributes } = device;
    assert.equal(attributes.portNumber, 1);
    assert.ok(attributes.nodeGuid > 0n);
    assert.ok([1024, 2048, 4096].includes(attributes.activeMtuBytes));
    assert.ok(attributes.maxMemoryRegionBytes > 2 ** 30 && attributes.maxQueuePairWr > 0);
    assert.equal(attributes.reportsSolicited, undefined);
    await device.close();
  });

  it('can what the device can', async () => {
    const all = open();
    const names = ['rc', 'uc', 'ud', 'atomic', 'shared-receive-queue', 'memory-window', 'xrc'];
    for (const name of names) assert.ok(all.capabilities.has(name as never), name);
    await all.close();
    fake.setFeatures(
      'fake0',
      Feature.ALL & ~(Feature.XRC | Feature.MW_TYPE_1 | Feature.MW_TYPE_2B),
    );
    const few = open();
    for (const name of ['xrc', 'memory-window']) assert.ok(!few.capabilities.has(name as never));
    await few.close();
  });

  it('has the GIDs of the port, the default first, without those of RoCE v1', async () => {
    const device = open();
    assert.equal(ipFromGid(device.gids[0] ?? new Uint8Array(16)), '198.51.100.1');
    const texts = device.gids.map(ipFromGid);
    assert.equal(new Set(texts).size, texts.length, 'each once');
    assert.ok(texts.includes('2001:db8::1'));
    const other = texts.indexOf('2001:db8::1');
    const index = device.hardwareGidIndex(other);
    assert.equal(device.localGidIndex(index), other);
    assert.throws(() => device.hardwareGidIndex(99), { code: 'EINVAL' });
    const chosen = open({ gidIndex: index });
    assert.equal(ipFromGid(chosen.gids[0] ?? new Uint8Array(16)), '2001:db8::1');
    assert.throws(() => open({ gidIndex: 200 }), { code: 'EINVAL', message: /index 200/ });
    await Promise.all([device.close(), chosen.close()]);
  });

  it('finds GIDs where their type is not told', async () => {
    fake.setFeatures('fake0', Feature.ALL & ~Feature.GID_TYPES);
    const device = open();
    assert.equal(ipFromGid(device.gids[0] ?? new Uint8Array(16)), '198.51.100.1');
    await device.close();
  });

  it('reads the table again when it has changed, and tells of port and device', async () => {
    const device = open();
    const events: number[] = [];
    device.setEventHandler((event) => events.push(event));
    const gid = Uint8Array.from({ length: 16 }, (_, i) => i + 0x20);
    fake.setGid('fake0', 1, 8, gid, GidType.ROCE_V2);
    fake.setLink('fake0', 1, 0);
    fake.setLink('fake0', 1, 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { GID_CHANGE, PORT_ERR, PORT_ACTIVE } = AsyncEventType;
    assert.deepEqual(events, [GID_CHANGE, PORT_ERR, PORT_ACTIVE]);
    assert.ok(device.gids.some((each) => Buffer.from(gid).equals(each)));
    await device.close();
  });

  it('refuses a name, and a port, that is not there', () => {
    assert.throws(() => open({ name: 'mlx5_9' }), { code: 'ENODEV', message: /mlx5_9/ });
    assert.throws(() => open({ portNumber: 7 }), { name: 'SpiError', message: /port 7/ });
  });

  it('leaves nothing open when opening fails half way', () => {
    const calls = [
      'ibv_get_device_list',
      'ibv_open_device',
      'ibv_create_comp_channel',
      'ibv_query_device',
      'ibv_query_port',
    ];
    for (const call of calls) {
      fake.inject(call, 1, EMFILE);
      assert.throws(() => open(), { name: 'SpiError', code: 'ENOMEM' }, call);
      assert.equal(fake.objects(), 0, call);
    }
  });

  it('ends with everything that is left of it, in order; then every object is dead', async () => {
    const pair = new Pair();
    const window = pair.device.createMemoryWindow(pair.pd, 2);
    const [gid = new Uint8Array(16)] = pair.device.gids;
    const ah = pair.device.createAddressHandle(pair.pd, { gid, localGidIndex: 0 });
    assert.ok(fake.objects() > 5);
    await pair.device.close();
    assert.equal(fake.objects(), 0);
    await pair.device.close();
    // None of these reaches another device's object of the same number.
    const other = new Pair();
    assert.throws(() => pair.queues['send A'].poll(), { code: 'EIO' });
    assert.throws(() => pair.a.ringSendDoorbell(), { code: 'EIO' });
    assert.throws(() => pair.device.createProtectionDomain(), { code: 'ENODEV' });
    assert.equal(pair.a.state, QpState.RESET);
    for (const object of [pair.a, pair.queues['send A'], pair.region, pair.pd, window, ah]) {
      object.destroy();
    }
    postSends(other.a, { opcode: 0, segments: [other.at(0, 8)], remote: other.remote(64) });
    assert.equal(drain(other.queues['send A']).length, 1);
    await other.close();
  });

  for (const call of ['ibv_close_device', 'ibv_destroy_comp_channel']) {
    it(`tells what ${call} fails with, and closes all the same when it can`, async () => {
      const device = open();
      fake.inject(call, 1, EIO);
      await assert.rejects(device.close(), { code: 'EIO', message: new RegExp(`${call}: EIO`) });
      assert.equal(fake.objects(), 0);
    });
  }

  it('names the call that opening has failed in', () => {
    for (const call of ['ibv_get_device_list', 'ibv_open_device', 'ibv_create_comp_channel']) {
      fake.inject(call, 1, EIO);
      assert.throws(() => open(), { code: 'EIO', message: new RegExp(`^${call}: EIO`) });
    }
  });

  it('keeps the objects of two devices apart, whatever their numbers', async () => {
    const first = new Pair();
    const second = new Pair({ name: 'fake1' });
    first.memory.fill(1, 0, 8);
    second.memory.fill(2, 0, 8);
    for (const pair of [first, second]) {
      postSends(pair.a, { opcode: 0, segments: [pair.at(0, 8)], remote: pair.remote(64) });
    }
    assert.deepEqual([first.memory[64], second.memory[64]], [1, 2]);
    assert.equal(drain(first.queues['send A']).length, 1);
    assert.equal(drain(second.queues['send A']).length, 1);
    const mixed = { ...first.initOf('A', undefined), pd: second.pd };
    assert.throws(() => first.device.createQueuePair(mixed), {
      code: 'EINVAL',
      message: /another device/,
    });
    await Promise.all([first.close(), second.close()]);
  });

  it('works in worker threads, and cleans up after one that just ends', async () => {
    const module = new URL('../../fake-verbs/worker.js', import.meta.url);
    const runs = ['close', 'exit', 'terminate'].map(async (end) => {
      const worker = new Worker(module, { workerData: end });
      const ended = new Promise((resolve) => worker.on('exit', resolve));
      const done = await new Promise((resolve, reject) => {
        worker.on('message', resolve);
        worker.on('error', reject);
      });
      assert.equal(done, 100, `completions of the worker that ends by ${end}`);
      if (end === 'terminate') await worker.terminate();
      await ended;
    });
    const pair = new Pair();
    await Promise.all(runs);
    postSends(pair.a, { opcode: 0, segments: [pair.at(0, 8)], remote: pair.remote(64) });
    assert.equal(drain(pair.queues['send A']).length, 1, 'the main thread has not noticed');
    await pair.close();
  });
});
