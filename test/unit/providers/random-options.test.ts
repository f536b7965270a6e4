/**
 * Every public function of providers, modules and captures, with any values: it works, or throws
 * what names the option; whatever was opened is closed again, and nothing is left.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createLogger, createRegistry, DatError, openIa } from '../../../plugins/node/index.js';
import { definePlugin, type ProviderInstance, withModules } from '../../../core/spi/index.js';
import { cm } from '../../../plugins/cm/index.js';
import { mad } from '../../../plugins/mad/index.js';
import { capture } from '../../../plugins/pcap/index.js';
import { xrc } from '../../../plugins/xrc/index.js';
import { defaultParameters } from '../../../providers/hca/index.js';
import {
  datProviderInit as mockInit,
  Fabric,
  mock,
  MockNode,
  namedFabric,
  SeededRandom,
  VirtualClock,
} from '../../../providers/mock/index.js';
import {
  datProviderInit as softroceInit,
  inspectSoftroce,
  softroce,
} from '../../../providers/softroce/index.js';
import {
  datProviderInit as verbsInit,
  inspectVerbs,
  verbs,
} from '../../../providers/verbs/index.js';
import { anyValue } from '../../compliance/hostile-values.js';

const SEED = 19;
const ADDRESS = '10.0.0.1';
const text = (...words: readonly string[]): fc.Arbitrary<unknown> => fc.constantFrom(...words);
const number = (...values: readonly number[]): fc.Arbitrary<unknown> => fc.constantFrom(...values);

/** Options of these names, each good or anything, some left out, perhaps with one that is not. */
function options(good: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<unknown> {
  const any = Object.entries(good).map(([name, arbitrary]) => [
    name,
    fc.oneof({ weight: 4, arbitrary }, { weight: 1, arbitrary: anyValue }),
  ]);
  const record = fc.record(Object.fromEntries(any) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: [],
  });
  const misspelt = fc
    .tuple(record, fc.constantFrom(...Object.keys(good)), anyValue)
    .map(([given, name, value]) => ({ ...given, [`${name}s`.toLowerCase()]: value }));
  return fc.oneof(
    { weight: 6, arbitrary: record },
    { weight: 1, arbitrary: misspelt },
    { weight: 1, arbitrary: anyValue },
  );
}

const parameters = options({
  ...Object.fromEntries(Object.keys(defaultParameters).map((name) => [name, number(0, 1, 2, 600)])),
  agreements: fc.boolean(),
});
const mtuBytes = number(256, 1024, 4096, 1500);
const address = text(ADDRESS, '10.0.0.2', '::1', '0.0.0.0', '::', 'x', '224.0.0.1');
const addresses = fc.array(fc.oneof(address, anyValue), { maxLength: 3 });
const udpPort = number(0, 1, 4791, 65535, 65536);
const link = options({
  bandwidth: number(0, 1, 1e9, Infinity),
  latencyMinUs: number(0, 8, 1e12),
  lossPercent: number(-1, 0, 50, 101),
  maxBacklogUs: number(0, Infinity),
});
const where = options({ from: address, to: address });
const action = options({
  type: text('drop', 'delay', 'duplicate', 'corrupt', 'fail', 'refuse', 'own-mtu', 'dorp'),
  byUs: number(0, 7, Infinity),
  afterUs: fc.array(number(0, 7, NaN), { maxLength: 2 }),
  byteOffset: number(0, 3),
  status: number(0, 1, 12, 99),
  code: text('EPERM'),
  mtuBytes,
});
const rule = options({
  match: options({
    ...{ from: address, opcode: text('RC_ACKNOWLEDGE', 'NONSENSE'), qpn: number(0, 1) },
    ...{
      mad: options({ attributeId: number(16, 70_000) }),
      nth: number(0, 1),
      count: number(0, 1),
    },
    ...{ percent: number(0, 50, 101), where: fc.constant(() => true) },
  }),
  action,
  seed: number(-1, 0, 7),
});
const line = fc.oneof(
  anyValue,
  fc
    .array(text('10.0.0.1', 'eth0', 'lo', '0', '1', 'udpPort=1', 'mtuBytes=x', 'port=raw', 'a=b'))
    .map((words) => words.join(' ')),
);
const rates = { maxHalfOpen: number(1, 2, 9), requestBurst: number(1, 2) };
const depths = { sendDepth: number(0, 1), rmpp: options({ maxTransfers: number(0, 1) }) };

interface Scene {
  readonly fabric: Fabric;
  readonly node: MockNode;
}

/** What is called with such values; what it makes, it ends. */
type Call = readonly [
  values: readonly fc.Arbitrary<unknown>[],
  run: (scene: Scene, ...values: never[]) => unknown,
];

/** Configures, opens and closes. */
async function openAndClose(make: () => ReturnType<typeof mock>): Promise<void> {
  const ia = await openIa(make());
  ia.createPz().free();
  await ia.close();
}

const opened = (good: object, given: unknown): never =>
  (typeof given === 'object' && given !== null && !Array.isArray(given)
    ? { ...good, ...given }
    : given) as never;

const CALLS: Readonly<Record<string, Call>> = {
  softroce: [
    [options({ addresses, udpPort, mtuBytes, port: text('auto', 'natvie'), parameters })],
    (_, given) => softroce(given),
  ],
  mock: [
    [options({ address, mtuBytes, parameters })],
    (_, given) => {
      const fabric = new Fabric({ autoRun: true });
      return openAndClose(() => mock(opened({ fabric, address: ADDRESS }, given))).finally(() => {
        assert.equal(fabric.pool.inUse, 0);
        // The address is free again.
        return fabric.openPort({ addresses: [ADDRESS] }).close();
      });
    },
  ],
  verbs: [
    [options({ device: text('rxe0', ''), address, port: number(0, 1), polling: text('spin') })],
    (_, given) => verbs(given),
  ],
  cm: [[options(rates)], (_, given) => openWith({ cm: cm(given) })],
  mad: [[options(depths)], (_, given) => openWith({ mad: mad(given) })],
  xrc: [[options({ key: anyValue })], (_, given) => openWith({ xrc: xrc(given) })],
  capture: [
    [anyValue, options({ file: text('/nowhere/x.pcapng'), udpPort })],
    (_, provider, given) => capture(provider, given),
  ],
  'capture of mock': [
    [options({ file: text('/nowhere/x.pcapng'), udpPort })],
    ({ fabric }, given) => capture(mock({ fabric, address: '::1' }), given),
  ],
  withModules: [[anyValue, anyValue], (_, provider, module) => withModules(provider, module)],
  definePlugin: [
    [options({ name: text('p'), kind: text('provider', 'cm'), sdkVersion: text('2.0') }), anyValue],
    (_, meta, create) => definePlugin(meta, create),
  ],
  'a plugin whose function returns anything': [
    [anyValue],
    (_, result: ProviderInstance) =>
      definePlugin(
        { name: 'p', kind: 'provider', sdkVersion: '2.0', requires: [], provides: [] },
        () => result,
      )(),
  ],
  namedFabric: [
    [fc.oneof(text('a'), anyValue), anyValue],
    (_, name, seed) => namedFabric(name, seed),
  ],
  'datProviderInit of softroce': [[line], (_, given) => softroceInit({} as never, given)],
  'datProviderInit of mock': [[line], (_, given) => mockInit({} as never, given)],
  'datProviderInit of verbs': [[line], (_, given) => verbsInit({} as never, given)],
  inspectSoftroce: [[anyValue], (_, given) => given !== undefined && inspectSoftroce(given)],
  inspectVerbs: [
    [options({ device: text(''), port: number(0), gidIndex: number(0) })],
    (_, given) => given !== undefined && Object.keys(given).length > 0 && inspectVerbs(given),
  ],
  'new Fabric': [
    [
      options({
        seed: number(-1, 0, 7),
        link,
        mtuBytes,
        autoRun: fc.boolean(),
        startUs: number(-1, 5),
      }),
    ],
    (_, given) => new Fabric(given),
  ],
  'fabric.setLink': [[where, link], ({ fabric }, at, given) => fabric.setLink(at, given)],
  'fabric.setBottleneck': [
    [address, options({ bandwidth: number(0, 9), queueBytes: number(0, 9) })],
    ({ fabric }, to, given) => fabric.setBottleneck(to, given),
  ],
  'fabric.partition': [
    [addresses, addresses, fc.oneof(text('both', 'out'), anyValue)],
    ({ fabric }, one, other, direction) => fabric.partition(one, other, direction),
  ],
  'fabric.heal': [[where], ({ fabric }, at) => fabric.heal(at)],
  'fabric.clog': [[where], ({ fabric }, at) => fabric.clog(at)],
  'fabric.unclog': [[where], ({ fabric }, at) => fabric.unclog(at)],
  'fabric.openPort': [
    [options({ addresses, mtuBytes })],
    ({ fabric }, given) => fabric.openPort(given).close(),
  ],
  'fabric.run': [
    [
      options({
        untilIdle: fc.boolean(),
        forUs: number(-1, 0, 9, NaN),
        until: fc.constant(() => true),
        withinUs: number(0, 9),
      }),
    ],
    ({ fabric }, given) => fabric.run(given),
  ],
  'fabric.faults.add': [[rule], ({ fabric }, given) => fabric.faults.add(given)],
  'node.sendFaults.add': [[rule], ({ node }, given) => node.sendFaults.add(given)],
  'node.port.faults.add': [[rule], ({ node }, given) => node.port.faults.add(given)],
  'node.port.faults.forge': [
    [options({ type: text('unreachable', 'refused'), gid: fc.constant(new Uint8Array(16)) })],
    ({ node }, given) => node.port.faults.forge(given),
  ],
  'new MockNode': [
    [options({ addresses, name: text('x', ''), mtuBytes, parameters, port: anyValue })],
    ({ fabric }, given) => new MockNode(fabric, given).close(),
  ],
  'new SeededRandom': [[anyValue], (_, seed) => new SeededRandom(seed)],
  'new VirtualClock': [[anyValue], (_, startUs) => new VirtualClock(startUs)],
  createLogger: [[options({ level: text('debug', 'loud') })], (_, given) => createLogger(given)],
  createRegistry: [
    [options({ plugins: fc.constant([]), datConf: anyValue, load: anyValue })],
    (_, given) => createRegistry(given),
  ],
  'registry.register': [
    [options({ name: text('x', ''), version: text('2.0', '2'), threadSafe: fc.boolean() })],
    ({ fabric }, given) => createRegistry().register(mock({ fabric, address: '::1' }), given),
  ],
  openIa: [
    [
      options({
        modules: options({ cm: anyValue }),
        logger: anyValue,
        asyncEvdQlen: number(0, 1),
        closeTimeoutMs: number(0, 1000),
      }),
    ],
    async (_, given) => {
      const fabric = new Fabric({ autoRun: true });
      await (await openIa(mock({ fabric, address: ADDRESS }), given)).close();
    },
  ],
};

async function openWith(modules: object): Promise<void> {
  const fabric = new Fabric({ autoRun: true });
  await (await openIa(mock({ fabric, address: ADDRESS }), { modules })).close();
}

/** Typed, and it says what was wrong with which value, in our words. */
function assertRefusal(error: unknown): void {
  const said = error instanceof Error ? error.message : '';
  const isTyped =
    (DatError.isDatError(error) && error.code !== 'DAT_INTERNAL_ERROR') ||
    (error instanceof Error && ['SpiError', 'RangeError', 'TypeError'].includes(error.name)) ||
    / plugin "p" made /.test(said);
  const names = [
    ...['; it must ', ' made ', 'ia_params "', 'not both', 'is of a device', 'is in use'],
    ...['not a configured', 'was made with seed'],
  ];
  assert.ok(
    isTyped && names.some((text) => said.includes(text)),
    error instanceof Error ? error.stack : String(error),
  );
}

describe('any options', () => {
  for (const [name, [values, run]] of Object.entries(CALLS)) {
    it(`${name}: taken, or refused by name`, async () => {
      let taken = 0;
      let refused = 0;
      const fabric = new Fabric();
      const node = new MockNode(fabric, { addresses: ['10.9.9.9'] });
      await fc.assert(
        fc.asyncProperty(fc.tuple(...values), async (given) => {
          try {
            await run({ fabric, node }, ...(given as never[]));
            taken++;
          } catch (error) {
            assertRefusal(error);
            refused++;
          }
        }),
        { numRuns: 100, seed: SEED },
      );
      await node.close();
      assert.equal(fabric.pool.inUse, 0);
      assert.ok(refused > 0, `${taken} of ${taken + refused} were taken`);
    });
  }
});
