// MAD and CM of a verbs device stand on the device and the timers of its container, so a wrapper of
// those sees what they do.

import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import {
  CM,
  type ConfiguredProvider,
  definePlugin,
  MAD,
  MadClass,
  type MadModule,
  part,
  type Registrar,
  TIMERS,
  type Timers,
  token,
} from 'dapl/spi';
import { decorate, over } from 'dapl/spi/decorators';
import { UMAD_PATH } from '../../../providers/verbs/mad/device.js';
import { CM_LIBRARY, loadCmFake } from '../../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../../fake-verbs/control.js';
import { fakeUmad, UmadNode } from '../../fake-umad/fake.js';

const [HERE, THERE] = ['198.51.100.1', '198.51.100.2'] as const;
const OWN_TIMERS = token<Timers>('test/own-timers');

/** The folder of the verbs provider whose code called last. */
function caller(): string | undefined {
  const frames = new Error().stack?.split('\n') ?? [];
  const [, folder] = /providers\/verbs\/(cm|mad)\//.exec(frames.join()) ?? [];
  return folder;
}

/** The provider with its timers wrapped, and with a MAD device that is a fake. */
function rebound(provider: ConfiguredProvider, path: string, onStart: () => void) {
  const around = (registrar: Registrar): Registrar => ({
    onOpen: (each) => registrar.onOpen(each),
    bind: (given, bound) => {
      if (given === (UMAD_PATH as symbol)) return registrar.bind(UMAD_PATH, () => () => path);
      if (given !== (TIMERS as symbol)) return registrar.bind(given, bound);
      registrar.bind(OWN_TIMERS, bound as () => Timers);
      const counted = part({ own: OWN_TIMERS }, ({ own }) =>
        over<Timers>(own, {
          start: (...values) => {
            onStart();
            own.start(...values);
          },
        }),
      );
      return registrar.bind(TIMERS, counted);
    },
  });
  const { instance } = provider;
  const open: typeof instance.open = (registrar, logger) =>
    instance.open(around(registrar), logger);
  return { ...provider, instance: { ...instance, open } };
}

describe('verbs: parts of a decorated device', () => {
  let ia: Ia;
  let mad: MadModule | undefined;
  const readers = new Set<string | undefined>();
  const starters = new Set<string | undefined>();
  before(async () => {
    const [fake, cm] = [fakeVerbs(), loadCmFake()];
    fake.restore();
    fake.setMode(Mode.THREAD);
    cm.addAddress(HERE, 'fake0');
    const { path } = new UmadNode(['fd00::1']);
    const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
    const own = rebound(verbs({ device: 'fake0', libraries }), path, () => {
      starters.add(caller());
    });
    const provider = decorate(own, {
      device: (inner) => ({
        get gids() {
          readers.add(caller());
          return inner.gids;
        },
      }),
    });
    const meta = {
      name: 'keeping',
      kind: 'cm',
      sdkVersion: '2.0',
      requires: [],
      provides: [],
    } as const;
    const keeping = definePlugin({ ...meta, inject: { cm: CM, mad: MAD } }, (deps) => {
      mad = deps.mad;
      return deps.cm;
    });
    ia = await openIa(provider, { modules: { cm: keeping() } });
  });
  after(async () => {
    await ia.close('abrupt');
    fakeUmad.reset();
  });

  it('its CM reads the GIDs of the decorated device', () => {
    assert.ok(readers.has('cm'), [...readers].join());
  });

  it('its CM waits by the timers of the container', () => {
    const ep = ia.createEndpoint({ pz: ia.createPz() });
    starters.clear();
    ep.connect({ address: THERE, connQual: 7, timeoutMs: 1000 });
    assert.ok(starters.has('cm'), [...starters].join());
  });

  it('its MAD reads them, too', async () => {
    const silent = { onReceive: () => undefined, onSend: () => undefined };
    const which = { managementClass: MadClass.SUBN_ADM, classVersion: 1, methods: [] };
    readers.clear();
    const agent = mad!.registerAgent({ ...which, ...silent, rmpp: true });
    assert.ok(readers.has('mad'), [...readers].join());
    await agent.unregister();
  });
});
