import assert from 'node:assert/strict';
import fc from 'fast-check';
import { DatError } from '../../../core/errors/index.js';
import { Cno, Evd } from '../../../core/evd/index.js';
import { type Logger, silentLogger } from '../../../core/spi/index.js';
import { anyValue, optionsLike } from '../../compliance/hostile-values.js';
import { FakeHost, settle } from './fake-host.js';
import { ALL, drain } from './set-up.js';

type Call = (...values: readonly unknown[]) => unknown;

/** Calls, with the kinds of their parameters. */
const EVD_CALLS: Readonly<Record<string, readonly fc.Arbitrary<unknown>[]>> = {
  wait: [optionsLike(['threshold', 'timeoutMs', 'signal'])],
  dequeueInto: [anyValue, anyValue],
  modifyUpcall: [anyValue, anyValue, optionsLike(['pending', 'limit', 'upcall'])],
  drainUpcalls: [anyValue],
  modifyCno: [anyValue],
  resize: [anyValue],
  setPolling: [anyValue],
  free: [optionsLike(['upcall'])],
  postSe: [anyValue],
};
const CNO_CALLS: Readonly<Record<string, readonly fc.Arbitrary<unknown>[]>> = {
  wait: [optionsLike(['timeoutMs', 'signal'])],
  modifyAgent: [anyValue],
};

const logger: Logger = { ...silentLogger, isDebugEnabled: () => true, child: () => logger };

function scene() {
  const host = new FakeHost();
  host.logger = logger;
  const cno = new Cno(host, { id: 1 });
  const evd = new Evd(host, { id: 2, qlen: 8, streams: ALL, cno });
  const ep = host.endpoint();
  host.cq.add({ context: ep.context, cookie: 1 });
  evd.postSe('software');
  host.run();
  return { host, cno, evd };
}

/** What a caller can see. */
function visible({ cno, evd }: ReturnType<typeof scene>): unknown {
  const { cno: of, ...rest } = evd.query();
  return [
    { ...rest, cno: of === cno },
    { ...cno.query(), evds: cno.query().evds.length },
  ];
}

async function isRefused(call: () => unknown): Promise<boolean> {
  try {
    const result = call();
    if (!(result instanceof Promise)) return false;
    let outcome: unknown;
    result.then(
      () => undefined,
      (error: unknown) => (outcome = error),
    );
    await settle();
    if (outcome === undefined) return false;
    throw outcome as Error;
  } catch (error) {
    assert.ok(DatError.isDatError(error), String(error));
    assert.notEqual(error.code, 'DAT_INTERNAL_ERROR');
    return true;
  }
}

describe('evd and cno: bad calls', () => {
  const tables = { evd: EVD_CALLS, cno: CNO_CALLS } as const;
  for (const [kind, calls] of Object.entries(tables)) {
    for (const [name, parameters] of Object.entries(calls)) {
      it(`${kind}.${name} with any values: taken, or a DatError and nothing changed`, async () => {
        await fc.assert(
          fc.asyncProperty(fc.tuple(...parameters), async (values) => {
            const here = scene();
            const before = visible(here);
            const object = kind === 'evd' ? here.evd : here.cno;
            const call = (object as unknown as Readonly<Record<string, Call>>)[name];
            assert.ok(call);
            if (!(await isRefused(() => call.apply(object, [...values])))) return;
            assert.deepEqual(visible(here), before);
            assert.deepEqual(drain(here.evd), [1, 'software']);
          }),
          { numRuns: 200, seed: 11 },
        );
      });
    }
  }

  it('new EVDs and CNOs of any options: made, or a DatError', async () => {
    const keys = ['qlen', 'streams', 'policy', 'handler', 'limit', 'polling', 'cno'];
    await fc.assert(
      fc.asyncProperty(optionsLike(keys), optionsLike(['agent']), async (evd, cno) => {
        const host = new FakeHost();
        const given = { id: 1, qlen: 8, ...(evd as object) };
        const refused = await isRefused(() => new Evd(host, given));
        if (refused) assert.equal(host.kept, 0);
        await isRefused(() => new Cno(host, { id: 1, ...(cno as object) }));
      }),
      { numRuns: 300, seed: 11 },
    );
  });
});
