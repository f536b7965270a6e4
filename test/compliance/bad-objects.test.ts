import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Ia, Lmr, Rmr, Srq } from 'dapl';
import {
  call,
  checkRows,
  Good,
  outcome,
  type Row,
  type Scene,
  scene,
  visible,
} from './bad-scene.js';
import { anyValue, optionsLike } from './hostile-values.js';

const CONN_QUAL = 7471;
const ia = (s: Scene): Ia => s.active.ia;
const PZ = new Good((s) => s.active.pz);
const EP = new Good((s) => s.active.ep);
const EVD = new Good((s) => s.active.evd);
const SEGMENT = new Good((s) => s.active.lmr.segment(0, 64));

/** Any options, with these in their place. */
function options(
  keys: readonly string[],
  good: Readonly<Record<string, unknown>>,
): fc.Arbitrary<unknown> {
  const merge = (value: unknown): unknown =>
    typeof value === 'object' && value !== null ? { ...value, ...good } : value;
  return fc.oneof(optionsLike([...keys, ...Object.keys(good)]), optionsLike(keys).map(merge));
}

/** Any value, or the one that belongs there. */
function or(good: unknown): fc.Arbitrary<unknown> {
  return fc.oneof(anyValue, fc.constant(good));
}

/** One of each scene, made when it is first asked for. */
function once<T extends object>(make: (scene: Scene) => T): (scene: Scene) => T {
  const made = new WeakMap<Scene, T>();
  return (here) => {
    const object = made.get(here) ?? make(here);
    made.set(here, object);
    return object;
  };
}

const srq = once((s): Srq => ia(s).createSrq({ pz: s.active.pz, maxRecvDtos: 4 }));
const rmr = once((s): Rmr => ia(s).createRmr(s.active.pz));
const rmrForEp = once((s): Rmr => ia(s).createRmrForEp(s.active.pz));
const BIND = ['privileges', 'cookie', 'flags', 'vaType'];

const ROWS: readonly Row[] = [
  {
    name: 'createSrq',
    on: ia,
    parameters: [options(['maxRecvDtos', 'maxRecvIov', 'lowWatermark', 'extra'], { pz: PZ })],
  },
  { name: 'postRecv', on: srq, parameters: [or(SEGMENT), anyValue] },
  { name: 'burst', on: srq, parameters: [anyValue] },
  { name: 'resize', on: srq, parameters: [anyValue] },
  { name: 'setLowWatermark', on: srq, parameters: [anyValue] },
  { name: 'createRmr', on: ia, parameters: [anyValue] },
  { name: 'createRmrForEp', on: ia, parameters: [anyValue] },
  {
    name: 'bind',
    connected: true,
    on: rmr,
    parameters: [or(SEGMENT), or(EP), options(BIND, {})],
  },
  {
    name: 'bind',
    connected: true,
    on: rmrForEp,
    parameters: [fc.constant(SEGMENT), fc.constant(EP), options(BIND, {})],
  },
  {
    name: 'unbind',
    connected: true,
    on: rmr,
    parameters: [or(EP), options(['cookie', 'flags', 'extra'], {})],
  },
  {
    name: 'createPsp',
    on: ia,
    parameters: [options(['flags', 'endpoint', 'extra'], { connQual: CONN_QUAL, evd: EVD })],
  },
  {
    name: 'createPspAny',
    on: ia,
    parameters: [options(['connQual', 'flags', 'endpoint'], { evd: EVD })],
  },
  {
    name: 'createRsp',
    on: ia,
    parameters: [options(['connQual', 'evd', 'extra'], { ep: EP })],
  },
  {
    name: 'createCsp',
    on: ia,
    parameters: [options(['address', 'comm', 'extra'], { evd: EVD })],
  },
  {
    name: 'createLmr',
    on: ia,
    parameters: [or(new Good((s) => s.active.lmr)), options(['sharedAs', 'vaType'], { pz: PZ })],
  },
  {
    name: 'mapFile',
    on: ia,
    parameters: [anyValue, options(['offsetBytes', 'lengthBytes', 'shared'], { pz: PZ })],
  },
  { name: 'syncRdmaRead', on: ia, parameters: [or(SEGMENT)] },
  { name: 'syncRdmaWrite', on: ia, parameters: [anyValue] },
  { name: 'memTypeHint', on: ia, parameters: [or(0), anyValue] },
];

describe('Bad parameters of objects', () => {
  checkRows(ROWS);

  it('freed and foreign handles are refused wherever a handle goes', async () => {
    const here = await scene(true);
    const { active, passive, strange, pair } = here;
    const { pz, ep, lmr } = active;
    const ours = { srq: srq(here), rmr: rmr(here) };
    const foreign = passive.ia.createSrq({ pz: passive.pz, maxRecvDtos: 1 });
    const freed = ia(here).createSrq({ pz, maxRecvDtos: 1 });
    freed.free();
    for (const handle of [...strange, foreign, freed]) {
      const before = visible(active);
      const calls: Readonly<Record<string, () => unknown>> = {
        'queue pz': () => call(ia(here), 'createSrq')({ pz: handle, maxRecvDtos: 1 }),
        'queue of an endpoint': () => call(ia(here), 'createEndpoint')({ pz, srq: handle }),
        'segment to a queue': () => call(ours.srq, 'postRecv')(handle),
        'window pz': () => call(ia(here), 'createRmr')(handle),
        'segment of a window': () => call(ours.rmr, 'bind')(handle, ep),
        'endpoint of a window': () => call(ours.rmr, 'bind')(lmr.segment(), handle),
        'endpoint of an unbind': () => call(ours.rmr, 'unbind')(handle),
        'region again': () => call(ia(here), 'createLmr')(handle, { pz }),
        'reserved endpoint': () => call(ia(here), 'createRsp')({ connQual: 9, ep: handle }),
        'requests of a reserved endpoint': () =>
          call(ia(here), 'createRsp')({ connQual: 9, ep: passive.ep, evd: handle }),
        'requests at an address': () =>
          call(ia(here), 'createCsp')({ address: '0.0.0.0:9', evd: handle }),
        'segment to sync': () => call(ia(here), 'syncRdmaRead')(handle),
      };
      for (const [name, run] of Object.entries(calls)) {
        assert.equal(await outcome(name, run), 'refused', name);
        assert.deepEqual(visible(active), before);
      }
    }
    assert.equal(ours.srq.query().outstandingDtos, 0);
    assert.equal(ours.rmr.query().lmr, undefined);
    await pair.close();
  });

  it('cr.handoff with any value', async () => {
    const { pair, active, passive } = await scene(false);
    const psp = passive.ia.createPsp({ connQual: CONN_QUAL, evd: passive.evd });
    active.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    const cr = await passive.request();
    psp.free();
    await fc.assert(
      fc.asyncProperty(anyValue, async (value) => {
        assert.equal(await outcome('cr.handoff', () => call(cr, 'handoff')(value)), 'refused');
      }),
      { seed: 7 },
    );
    cr.accept(passive.ep);
    await active.expect('ESTABLISHED');
    await pair.close();
  });

  it('every call on what has been freed: DAT_INVALID_HANDLE', async () => {
    const here = await scene(true);
    const { active, pair } = here;
    const objects: readonly (readonly [object, readonly string[]])[] = [
      [srq(here), ['postRecv', 'burst', 'query', 'resize', 'setLowWatermark', 'free']],
      [rmr(here), ['bind', 'unbind', 'query', 'free']],
      [ia(here).createPspAny(), ['query', 'free']],
      [ia(here).createRsp({ connQual: 9, ep: active.endpoint() }), ['query', 'free']],
      [ia(here).createCsp({ address: '0.0.0.0:10' }), ['query', 'free']],
      [ia(here).createPz(), ['query', 'free']],
      [ia(here).allocate(8, { pz: active.pz }), ['segment', 'query', 'free']],
    ];
    const lmr: Lmr = ia(here).allocate(8, { pz: active.pz });
    for (const [object, names] of objects) {
      call(object, 'free')();
      for (const name of names) {
        const code = await codeOf(() => call(object, name)(lmr.segment(), active.ep));
        assert.equal(code, 'DAT_INVALID_HANDLE', `${object.constructor.name}.${name}`);
      }
    }
    await pair.close();
  });
});

async function codeOf(run: () => unknown): Promise<unknown> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}
