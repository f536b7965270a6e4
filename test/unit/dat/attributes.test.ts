import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import {
  CompletionFlags,
  DatError,
  EvdFlags,
  type EvdStream,
  type Ia,
  openIa,
  VaType,
} from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { softroce } from '../../../providers/softroce/index.js';
import { loopback, testPort } from '../../support/loopback.js';

function refused(code: string): (error: unknown) => boolean {
  return (error) => DatError.isDatError(error) && (error.subtype ?? error.code) === code;
}

const PROVIDERS: Readonly<Record<string, () => Promise<Ia>>> = {
  mock: () => openIa(mock({ fabric: new Fabric({ autoRun: true }), address: '10.0.0.1' })),
  softroce: () => openIa(softroce({ addresses: [loopback(73, 1)], udpPort: testPort(1) })),
};

describe('attributes of a device without RDMA reads', () => {
  it('say so', async () => {
    const parameters = { maxResponderResources: 0, maxInitiatorDepth: 0 };
    const fabric = new Fabric({ autoRun: true });
    const ia = await openIa(mock({ fabric, address: '10.0.0.1', parameters }));
    const { ia: limits, provider } = ia.query();
    assert.equal(provider.providerSpecific['DAT_IB_RDMA_READ'], 'FALSE');
    assert.deepEqual([limits.maxRdmaReadPerEpIn, limits.maxRdmaReadPerEpOut], [0, 0]);
    await ia.close();
  });
});

for (const [name, open] of Object.entries(PROVIDERS)) {
  describe(`attributes of ${name}`, () => {
    let ia: Ia;
    before(async () => {
      ia = await open();
    });
    after(() => ia.close());

    it('have every name of DAT, and nothing without a value', () => {
      const { ia: adapter, provider } = ia.query();
      for (const [attribute, value] of Object.entries({ ...adapter, ...provider })) {
        assert.notEqual(value, undefined, attribute);
        assert.ok(!Number.isNaN(value), attribute);
      }
      assert.equal(adapter.iaAddress, ia.address);
      assert.equal(provider.datVersionMajor, 2);
      assert.equal(provider.providerName, name);
      assert.equal(provider.providerSpecific['DAT_IB_RDMA_READ'], 'TRUE');
      assert.ok(256 % provider.optimalBufferAlignment === 0);
    });

    it('name limits at which calls are refused, and not before', async () => {
      const { ia: limits } = ia.query();
      const pz = ia.createPz();
      const evd = ia.createEvd({ qlen: Math.min(limits.maxEvdQlen, 1024) });
      await evd.free();
      assert.throws(() => ia.createEvd({ qlen: limits.maxEvdQlen + 1 }), DatError);
      const attributes = {
        maxRdmaReadIn: limits.maxRdmaReadPerEpIn,
        maxRdmaReadOut: limits.maxRdmaReadPerEpOut,
        maxRequestIov: limits.maxIovSegmentsPerDto,
        maxRecvIov: limits.maxIovSegmentsPerDto,
      };
      const ep = ia.createEndpoint({ pz, attributes });
      assert.equal(ep.query().attributes.maxRdmaReadIn, limits.maxRdmaReadPerEpIn);
      ep.free();
      for (const attribute of Object.keys(attributes) as (keyof typeof attributes)[]) {
        const beyond = { ...attributes, [attribute]: attributes[attribute] + 1 };
        assert.throws(() => ia.createEndpoint({ pz, attributes: beyond }), DatError, attribute);
      }
      const tooManyDtos = { maxRequestDtos: limits.maxDtoPerEp + 1 };
      assert.throws(() => ia.createEndpoint({ pz, attributes: tooManyDtos }), DatError);
      assert.throws(() => ia.allocate(limits.maxLmrBlockSize + 1, { pz }), DatError);
      pz.free();
    });

    it('say which streams may feed one EVD', async () => {
      const table = ia.query().provider.evdStreamMergingSupported;
      const streams = Object.keys(table) as EvdStream[];
      assert.deepEqual(streams, ['SOFTWARE', 'CR', 'DTO', 'CONNECTION', 'RMR_BIND', 'ASYNC']);
      for (const one of streams) {
        for (const other of streams) {
          assert.equal(table[one][other], table[other][one]);
          const make = (): Promise<void> =>
            ia.createEvd({ qlen: 1, streams: EvdFlags[one] | EvdFlags[other] }).free();
          if (table[one][other]) await make();
          else assert.throws(make, refused('DAT_INVALID_ARG4'));
        }
      }
    });

    it('say how much private data a connect takes', () => {
      const { maxPrivateDataSize } = ia.query().provider;
      const pz = ia.createPz();
      const ep = ia.createEndpoint({ pz });
      const connect = (bytes: number): void =>
        ep.connect({ address: ia.address, connQual: 7, privateData: new Uint8Array(bytes) });
      assert.throws(() => connect(maxPrivateDataSize + 1), DatError);
      connect(maxPrivateDataSize);
      ep.free();
      pz.free();
    });

    it('agree about what is supported', () => {
      const { ia: limits, provider } = ia.query();
      assert.equal(provider.srqSupported, limits.maxSrqs > 0);
      assert.equal(provider.srqSupported, limits.maxRecvPerSrq > 0 && limits.maxEpPerSrq > 0);
      assert.equal(provider.rmrScopeSupported.length > 0, limits.maxRmrs > 0);
      const pz = ia.createPz();
      if (provider.srqSupported) {
        const srq = ia.createSrq({ pz, maxRecvDtos: 4 });
        const { availableDtos, outstandingDtos } = srq.query();
        const { srqInfoSupported } = provider;
        assert.equal(availableDtos !== undefined, srqInfoSupported.availableDtos);
        assert.equal(outstandingDtos === 0, srqInfoSupported.outstandingDtos);
        const otherPz = ia.createPz();
        const make = (): void => ia.createEndpoint({ pz: otherPz, srq }).free();
        if (provider.srqEpPzDifferenceSupported) make();
        else assert.throws(make, DatError);
        otherPz.free();
        srq.free();
      } else {
        assert.throws(
          () => ia.createSrq({ pz, maxRecvDtos: 4 }),
          refused('DAT_MODEL_NOT_SUPPORTED'),
        );
      }
      pz.free();
    });

    it('name the kinds of memory that can be registered', () => {
      const { lmrMemTypesSupported } = ia.query().provider;
      const pz = ia.createPz();
      const lmr = ia.createLmr(new Uint8Array(new ArrayBuffer(64)), { pz });
      const again = ia.createLmr(lmr, { pz });
      const shared = ia.createLmr(new ArrayBuffer(64), { pz, sharedAs: `of ${name}` });
      const made = [lmr, again, shared].map((region) => region.query().memType);
      assert.deepEqual(made, lmrMemTypesSupported.slice(0, 3));
      for (const region of [again, shared, lmr]) region.free();
      const fd = openSync(import.meta.filename, 'r');
      try {
        const map = (): void => ia.mapFile(fd, { pz, shared: false }).free();
        if (lmrMemTypesSupported.includes('FILE')) map();
        else assert.throws(map, refused('DAT_MODEL_NOT_SUPPORTED'));
      } finally {
        closeSync(fd);
      }
      pz.free();
    });

    it('say whether regions and windows may be zero-based, and what windows open to', () => {
      const { ia: limits, provider } = ia.query();
      const pz = ia.createPz();
      const make = (): void => ia.createLmr(new ArrayBuffer(64), { pz, vaType: VaType.ZB }).free();
      if (limits.zbSupported) make();
      else assert.throws(make, refused('DAT_MODEL_NOT_SUPPORTED'));
      const scopes = { EP: () => ia.createRmrForEp(pz), PZ: () => ia.createRmr(pz) };
      for (const [scope, makeRmr] of Object.entries(scopes)) {
        if (provider.rmrScopeSupported.includes(scope as 'EP' | 'PZ')) makeRmr().free();
        else assert.throws(makeRmr, refused('DAT_MODEL_NOT_SUPPORTED'));
      }
      pz.free();
    });

    it('name the completion flags that an endpoint takes', () => {
      const { completionFlagsSupported } = ia.query().provider;
      const pz = ia.createPz();
      for (const flag of ['UNSIGNALLED', 'EVD_THRESHOLD'] as const) {
        const flags = CompletionFlags[flag];
        const attributes = { requestCompletionFlags: flags, recvCompletionFlags: flags };
        const make = (): void => ia.createEndpoint({ pz, attributes }).free();
        if ((completionFlagsSupported & CompletionFlags[flag]) !== 0) make();
        else assert.throws(make, DatError, flag);
      }
      pz.free();
    });
  });
}
