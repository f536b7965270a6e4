import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  createRegistry,
  DatError,
  EP_FIELDS,
  type Ep,
  EventBatch,
  MemPrivileges,
  openIa,
  RemoteSegment,
} from 'dapl';
import {
  call,
  checkRows,
  Good,
  outcome,
  PASSIVE,
  type Row,
  RUNS,
  type Scene,
  scene,
  visible,
} from './bad-scene.js';
import { anyValue, optionsLike } from './hostile-values.js';
import type { Peer } from '../../plugins/testing/suite/peer.js';
import { EP_ATTRIBUTE_FIELDS } from '../../core/dat/endpoint/modify.js';

const CONNECT = ['address', 'connQual', 'timeoutMs', 'privateData', 'qos', 'flags'];
const ENDPOINT = ['recvEvd', 'requestEvd', 'connectEvd', 'attributes', 'extra'];

const DUP = ['timeoutMs', 'privateData', 'qos', 'flags'];
const MODIFY = [...Object.keys(EP_FIELDS), 'attributes', 'extra'];
const ATTRIBUTES = [...Object.keys(EP_ATTRIBUTE_FIELDS), 'extra'];

const active = (s: Scene): Peer => s.active;
const ep = (s: Scene): Ep => s.active.ep;
const POST = { connected: true, on: ep } as const;

/** Mostly what the call takes, so that each parameter is reached with bad values. */
const mostly = (of: (scene: Scene) => unknown, bad = anyValue): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(new Good(of)) }, { weight: 1, arbitrary: bad });
const SEGMENTS = mostly((s) => s.active.lmr.segment(0, 8));
const COOKIE = mostly(() => 7);
const U32 = mostly(() => 5);
const U64 = mostly(() => 5n);
const FLAGS = mostly(() => 0);
const REMOTE_OF = mostly((s) => s.passive.remote(), optionsLike(['address', 'rmrContext']));
const SINK = mostly(
  ({ active: { lmr } }) => ({
    address: lmr.address,
    rmrContext: lmr.rmrContext,
    lengthBytes: 8,
  }),
  optionsLike(['address', 'rmrContext', 'lengthBytes']),
);

const ROWS: readonly Row[] = [
  {
    name: 'createPsp',
    on: (s) => active(s).ia,
    parameters: [optionsLike(['connQual', 'evd', 'flags'])],
  },
  {
    name: 'createEvd',
    on: (s) => active(s).ia,
    parameters: [optionsLike(['qlen', 'streams', 'policy', 'handler', 'limit', 'polling'])],
  },
  {
    name: 'createEndpoint',
    on: (s) => active(s).ia,
    parameters: [optionsLike(['pz', ...ENDPOINT])],
  },
  {
    name: 'createLmr',
    on: (s) => active(s).ia,
    parameters: [anyValue, optionsLike(['pz', 'privileges'])],
  },
  {
    name: 'allocate',
    on: (s) => active(s).ia,
    parameters: [anyValue, optionsLike(['pz', 'privileges'])],
  },
  { name: 'createCno', on: (s) => active(s).ia, parameters: [optionsLike(['agent', 'extra'])] },
  { name: 'modifyCno', on: (s) => active(s).evd, parameters: [anyValue] },
  { name: 'connect', on: ep, parameters: [optionsLike(CONNECT)] },
  { name: 'disconnect', on: ep, parameters: [anyValue] },
  { name: 'postRecv', ...POST, parameters: [SEGMENTS, COOKIE, FLAGS] },
  { name: 'postSend', ...POST, parameters: [SEGMENTS, COOKIE, FLAGS] },
  { name: 'postRdmaWrite', ...POST, parameters: [SEGMENTS, COOKIE, REMOTE_OF, FLAGS] },
  { name: 'postRdmaRead', ...POST, parameters: [SEGMENTS, COOKIE, REMOTE_OF, FLAGS] },
  { name: 'postSendWithInvalidate', ...POST, parameters: [SEGMENTS, COOKIE, U32, FLAGS] },
  { name: 'postSendWithImmediate', ...POST, parameters: [SEGMENTS, COOKIE, U32, FLAGS] },
  {
    name: 'postRdmaWriteWithImmediate',
    ...POST,
    parameters: [SEGMENTS, COOKIE, REMOTE_OF, U32, FLAGS],
  },
  { name: 'postRdmaReadToRmr', ...POST, parameters: [SINK, COOKIE, REMOTE_OF, FLAGS] },
  { name: 'postFetchAdd', ...POST, parameters: [SEGMENTS, COOKIE, REMOTE_OF, U64, FLAGS] },
  { name: 'postCompareSwap', ...POST, parameters: [SEGMENTS, COOKIE, REMOTE_OF, U64, U64, FLAGS] },
  { name: 'burst', ...POST, parameters: [anyValue] },
  { name: 'dupConnect', on: ep, parameters: [anyValue, optionsLike(DUP)] },
  {
    name: 'commonConnect',
    on: ep,
    parameters: [fc.oneof(anyValue, optionsLike(['address', 'port'])), optionsLike(DUP)],
  },
  { name: 'modify', on: ep, parameters: [optionsLike(MODIFY)] },
  {
    name: 'modify',
    on: ep,
    parameters: [fc.record({ attributes: optionsLike(ATTRIBUTES) })],
  },
  { name: 'setWatermark', on: ep, parameters: [anyValue, anyValue] },
  { name: 'counters', on: ep, parameters: [optionsLike(['reset', 'extra'])] },
  { name: 'counters', on: (s) => active(s).ia, parameters: [optionsLike(['reset', 'extra'])] },
  { name: 'counters', on: (s) => active(s).evd, parameters: [optionsLike(['reset'])] },
  { name: 'segment', on: (s) => active(s).lmr, parameters: [anyValue, anyValue] },
  { name: 'set', on: (s) => active(s).lmr.segment(), parameters: [anyValue, anyValue] },
  { name: 'seek', on: (s) => active(s).remote(), parameters: [anyValue] },
  {
    name: 'wait',
    on: (s) => active(s).evd,
    parameters: [optionsLike(['threshold', 'timeoutMs', 'signal'])],
  },
  { name: 'dequeueInto', on: (s) => active(s).evd, parameters: [anyValue, anyValue] },
  {
    name: 'modifyUpcall',
    on: (s) => active(s).evd,
    parameters: [anyValue, anyValue, optionsLike(['pending', 'limit', 'upcall'])],
  },
  { name: 'resize', on: (s) => active(s).evd, parameters: [anyValue] },
  { name: 'setPolling', on: (s) => active(s).evd, parameters: [anyValue] },
  { name: 'close', on: (s) => active(s).ia, parameters: [anyValue] },
];

describe('Bad parameters', () => {
  checkRows(ROWS);

  it('freed and foreign handles are refused wherever a handle goes', async () => {
    const { active, strange, pair } = await scene(true);
    const { ia, pz } = active;
    const connQual = 7;
    const remote = { address: 0n, rmrContext: 1 };
    for (const handle of strange) {
      const before = visible(active);
      const calls: Readonly<Record<string, () => unknown>> = {
        'endpoint pz': () => call(ia, 'createEndpoint')({ pz: handle }),
        'endpoint srq': () => call(ia, 'createEndpoint')({ pz, srq: handle }),
        'modified pz': () => call(active.endpoint(), 'modify')({ pz: handle }),
        'modified evd': () => call(active.endpoint(), 'modify')({ requestEvd: handle }),
        'endpoint to connect like': () => call(active.endpoint(), 'dupConnect')(handle),
        'sink of an atomic': () => call(active.ep, 'postFetchAdd')(handle, 1, remote, 1n),
        'sink by context': () => call(active.ep, 'postRdmaReadToRmr')(handle, 1, remote),
        'endpoint evd': () => call(ia, 'createEndpoint')({ pz, recvEvd: handle }),
        'region pz': () => call(ia, 'allocate')(8, { pz: handle }),
        'service point evd': () => call(ia, 'createPsp')({ connQual, evd: handle }),
        'segment to send': () => call(active.ep, 'postSend')(handle),
        'segments to receive into': () => call(active.ep, 'postRecv')([handle]),
      };
      for (const [name, run] of Object.entries(calls)) {
        assert.equal(await outcome(name, run), 'refused', name);
        assert.deepEqual(visible(active), before);
      }
    }
    await pair.close();
  });

  it('cr.accept and cr.reject with any values', async () => {
    const { pair, active, passive } = await scene(false);
    const psp = passive.ia.createPsp({ connQual: 7471, evd: passive.evd });
    active.ep.connect({ address: PASSIVE, connQual: 7471 });
    const cr = await passive.request();
    psp.free();
    const options = optionsLike(['privateData', 'extra']);
    await fc.assert(
      fc.asyncProperty(anyValue, options, async (ep, given) => {
        assert.equal(await outcome('cr.accept', () => call(cr, 'accept')(ep, given)), 'refused');
      }),
      { numRuns: RUNS, seed: 7 },
    );
    cr.accept(passive.ep);
    await active.expect('ESTABLISHED');
    await pair.close();
  });

  it('openIa and the registry with any values', async () => {
    const registry = createRegistry({ plugins: [] });
    const options = optionsLike(['modules', 'logger', 'asyncEvdQlen', 'closeTimeoutMs']);
    await fc.assert(
      fc.asyncProperty(anyValue, options, async (plugin, given) => {
        const opening = call({ openIa }, 'openIa')(plugin, given) as Promise<unknown>;
        const error: unknown = await opening.then(
          () => undefined,
          (reason: unknown) => reason,
        );
        assert.ok(DatError.isDatError(error), String(error));
        for (const name of ['register', 'unregister']) {
          const run = (): unknown => call(registry, name)(plugin, given);
          assert.equal(await outcome(name, run), 'refused');
        }
      }),
      { numRuns: RUNS, seed: 7 },
    );
  });

  it('RemoteSegment and EventBatch with any values', () => {
    const make = (type: unknown, value: unknown): void => {
      try {
        new (type as new (value: unknown) => unknown)(value);
      } catch (error) {
        assert.ok(DatError.isDatError(error), String(error));
      }
    };
    const remote = optionsLike(['address', 'rmrContext']);
    fc.assert(
      fc.property(remote, (value) => make(RemoteSegment, value)),
      { seed: 7 },
    );
    fc.assert(
      fc.property(anyValue, (value) => make(EventBatch, value)),
      { seed: 7 },
    );
    assert.ok(MemPrivileges.ALL > 0);
  });
});
