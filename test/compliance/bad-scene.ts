/** Two adapters on mock, calls with any values, and what must hold of them. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { DatError, openIa } from 'dapl';
import { type Logger, silentLogger } from 'dapl/spi';
import { Fabric, mock } from 'dapl/providers/mock';
import { connected, meet, type Peer, type Peers } from '../../plugins/testing/suite/peer.js';

const ACTIVE = '192.0.2.1';
export const PASSIVE = '192.0.2.2';
export const RUNS = 150;

/** Calls are traced, before they are checked: that must not fail either. */
const logger: Logger = { ...silentLogger, isDebugEnabled: () => true, child: () => logger };

/** Past the type checker, as a JavaScript caller would. */
export type Call = (...values: readonly unknown[]) => unknown;
export const call = (object: object, name: string): Call => {
  const method = (object as Readonly<Record<string, unknown>>)[name] as Call;
  return (...values) => method.apply(object, [...values]);
};

export interface Scene extends Peers {
  readonly fabric: Fabric;
  /** Handles of every kind that are freed, and of another adapter. */
  readonly strange: readonly unknown[];
}

export async function scene(connect: boolean): Promise<Scene> {
  const fabric = new Fabric({ seed: 1, autoRun: true });
  const open = (address: string): ReturnType<typeof openIa> =>
    openIa(mock({ fabric, address }), { logger });
  const [active, passive] = [await open(ACTIVE), await open(PASSIVE)];
  const close = async (): Promise<void> => {
    await Promise.all([active.close(), passive.close()]);
  };
  const pair = { active, passive, passiveAddress: PASSIVE, close };
  const peers = connect ? await connected(pair) : meet(pair);
  const pz = active.createPz();
  const freed = active.allocate(8, { pz });
  const segment = freed.segment();
  freed.free();
  pz.free();
  const { ep, evd, lmr } = peers.passive;
  const foreign = [ep, evd, lmr, peers.passive.pz, lmr.segment(), passive];
  return { ...peers, fabric, strange: [pz, freed, segment, ...foreign] };
}

/** A good value of the scene, in place of a random one. */
export class Good {
  constructor(readonly of: (scene: Scene) => unknown) {}
}

/** Good values among the bad ones, so that what stands behind the first check is reached too. */
function resolved(value: unknown, here: Scene): unknown {
  if (value instanceof Good) return value.of(here);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  if (!entries.some(([, field]) => field instanceof Good)) return value;
  return Object.fromEntries(entries.map(([key, field]) => [key, resolved(field, here)]));
}

/** What a caller can see of an endpoint, its memory and its adapter. */
export function visible({ ep, lmr, evd }: Peer): unknown {
  const { state, qpn, requestsFree, receivesFree } = ep;
  const { policy, pending, taker, qlen } = evd.query();
  const { attributes, srq, softWatermark, hardWatermark } = ep.query();
  return [
    state,
    qpn,
    requestsFree,
    receivesFree,
    policy,
    pending,
    taker,
    qlen,
    { ...attributes, srq, softWatermark, hardWatermark },
    [...lmr.bytes.subarray(0, 64)],
  ];
}

/** Calls, each with the kinds of its parameters; `ok` undoes what a legal call has done. */
export interface Row {
  readonly name: string;
  readonly connected?: boolean;
  readonly on: (scene: Scene) => object;
  readonly parameters: readonly fc.Arbitrary<unknown>[];
}

/** Whether the call went through, after all; what it throws is a DatError. */
export async function outcome(row: string, run: () => unknown): Promise<'refused' | 'taken'> {
  try {
    const result = run();
    // A promise that waits for events is legal; one that fails says so at once.
    if (result instanceof Promise) {
      const soon = new Promise((resolve) => setImmediate(resolve));
      await Promise.race([result, soon]);
      result.catch(() => undefined);
    }
    return 'taken';
  } catch (error) {
    if (!DatError.isDatError(error)) {
      const what = error instanceof Error ? error.stack : String(error);
      assert.fail(`${row} threw what is not a DatError: ${what}`);
    }
    assert.notEqual(error.code, 'DAT_INTERNAL_ERROR', error.message);
    return 'refused';
  }
}

/** A test a row: whatever is passed, the call is taken, or refused and nothing changes. */
export function checkRows(rows: readonly Row[]): void {
  for (const [i, row] of rows.entries()) {
    const name = `${row.name} (${i}) with any values: taken, or a DatError and nothing changed`;
    it(name, async () => {
      let here = await scene(row.connected === true);
      let refusals = 0;
      await fc.assert(
        fc.asyncProperty(fc.tuple(...row.parameters), async (values) => {
          const before = visible(here.active);
          const target = row.on(here);
          const result = await outcome(row.name, () =>
            call(target, row.name)(...values.map((value) => resolved(value, here))),
          );
          if (result === 'refused') {
            refusals++;
            assert.deepEqual(visible(here.active), before);
            return;
          }
          await here.pair.close();
          here = await scene(row.connected === true);
        }),
        { numRuns: RUNS, seed: 7 },
      );
      await here.pair.close();
      assert.ok(refusals > RUNS / 10, `${refusals} of ${RUNS} calls were refused`);
    });
  }
}
