/** The limit test: creates objects of one kind until that fails, or the limit is reached. */
import { DatError, type Ep, type Evd, type Ia, type Pz } from 'dapl';

import { sentenceOf } from '../program.js';
import type { Print } from './report.js';
import type { Open } from './server.js';

const EVENTS = 10;
const BUFFER_BYTES = 4096;
/** The largest length that the C program tries: its next power of two is not a valid length. */
const LARGEST_REGION_BYTES = 2 ** 30;
const STARS = '*'.repeat(70);

/** Objects that exist before those of the test. */
interface World {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly evd: Evd;
  readonly ep: Ep;
  readonly open: Open;
}

/** Destroys one object. */
type Undo = () => unknown;

interface Limit {
  readonly description: string;
  /** Words of the line with the count. */
  readonly objects: string;
  /** Creates one more object. */
  readonly make: (world: World, index: number, firstPort: number) => Undo | Promise<Undo>;
}

export const LIMITS = {
  limit_ia: {
    description: 'max num of opens for the same physical IA',
    objects: 'IAs opened',
    make: async ({ open }) => {
      const ia = await open();
      return () => ia.close('graceful');
    },
  },
  limit_pz: {
    description: 'max num of PZs that are supported by an IA',
    objects: 'PZs created',
    make: ({ ia }) => freeing(ia.createPz()),
  },
  limit_cno: {
    description: 'max num of CNOs that are supported by an IA',
    objects: 'CNOs created',
    make: ({ ia }) => freeing(ia.createCno()),
  },
  limit_evd: {
    description: 'max num of EVDs that are supported by an IA',
    objects: 'EVDs created',
    make: ({ ia }) => freeing(ia.createEvd({ qlen: EVENTS })),
  },
  limit_ep: {
    description: 'max num of EPs that are supported by an IA',
    objects: 'EPs created',
    make: (world) => freeing(makeEndpoint(world)),
  },
  limit_rsp: {
    description: 'max num of RSPs that are supported by an IA',
    objects: 'RSPs created',
    make: (world, index, firstPort) => {
      const ep = makeEndpoint(world);
      const { ia, evd } = world;
      const rsp = ia.createRsp({ connQual: firstPort + index, ep, evd });
      return () => {
        rsp.free();
        ep.free();
      };
    },
  },
  limit_psp: {
    description: 'max num of PSPs that are supported by an IA',
    objects: 'PSPs created',
    make: ({ ia, evd }, index, firstPort) =>
      freeing(ia.createPsp({ connQual: firstPort + index, evd })),
  },
  limit_lmr: {
    description: 'max num of LMRs that are supported by an IA',
    objects: 'LMRs created',
    make: ({ ia, pz }) => freeing(ia.allocate(BUFFER_BYTES, { pz })),
  },
  limit_rpost: {
    description: 'max num of receive buffers posted to an EP',
    objects: 'recv buffers posted',
    make: ({ ia, pz, ep }) => {
      const lmr = ia.allocate(BUFFER_BYTES, { pz });
      ep.postRecv(lmr.segment());
      // Receives are freed with their endpoint, and regions with the adapter.
      return () => undefined;
    },
  },
} as const satisfies Record<string, Limit>;

export type LimitName = keyof typeof LIMITS | 'limit_size_lmr';

export interface LimitOptions {
  readonly tests: readonly LimitName[];
  /** Number of objects after which the test ends. */
  readonly maximum: number;
  /** Number of adapters, each with its own objects; the test uses them in turn. */
  readonly width: number;
  readonly firstPort: number;
}

export async function runLimits(open: Open, options: LimitOptions, print: Print): Promise<void> {
  for (const test of options.tests) {
    print(STARS);
    print(`Limitation Test                      ${test}`);
    if (test === 'limit_size_lmr') await largestRegion(open, print);
    else await exhaust(open, LIMITS[test], options, print);
    print(STARS);
  }
}

async function exhaust(
  open: Open,
  { description, objects, make }: Limit,
  { maximum, width, firstPort }: LimitOptions,
  print: Print,
): Promise<void> {
  print(`Description:  Test ${description}`);
  const worlds: World[] = [];
  for (let n = 0; n < width; n++) worlds.push(await makeWorld(open));
  const undos: Undo[] = [];
  try {
    for (let index = 0; index < maximum; index++) {
      const world = worlds[index % width];
      if (world !== undefined) undos.push(await make(world, index, firstPort));
    }
  } catch (error) {
    if (!DatError.isDatError(error)) throw error;
    print(`LimitTest: #${undos.length + 1} fails: ${sentenceOf(error)}`);
  }
  print(`LimitTest: ${objects}: ${undos.length}`);
  for (const undo of undos) await undo();
  for (const { ia } of worlds) await ia.close('abrupt');
}

async function largestRegion(open: Open, print: Print): Promise<void> {
  print('Description:  Test max size of LMRs that are supported by an IA');
  const { ia, pz } = await makeWorld(open);
  const { maxLmrBlockSize } = ia.query().ia;
  let largest = 0;
  try {
    for (let bytes = BUFFER_BYTES; bytes <= LARGEST_REGION_BYTES; bytes *= 2) {
      ia.allocate(bytes, { pz }).free();
      largest = bytes;
    }
  } catch (error) {
    print(`LimitTest: ${2 * largest} bytes fail: ${sentenceOf(error)}`);
  }
  print(`LimitTest: Largest LMR was ${largest} bytes (the adapter allows ${maxLmrBlockSize})`);
  await ia.close('abrupt');
}

async function makeWorld(open: Open): Promise<World> {
  const ia = await open();
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: EVENTS });
  return { ia, pz, evd, ep: ia.createEndpoint({ pz }), open };
}

function makeEndpoint({ ia, pz, evd }: World): Ep {
  const streams = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  return ia.createEndpoint({ pz, ...streams, attributes: { maxRecvDtos: 1, maxRequestDtos: 1 } });
}

function freeing(handle: { free: () => unknown }): Undo {
  return () => handle.free();
}
