// Every call of libibverbs and librdmacm fails once, wherever it occurs in a life: the consumer
// is told, nothing hangs, nothing is left.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { DatError } from 'dapl';
import { loadCmFake } from '../../fake-verbs/cm-host.js';
import { fakeVerbs, injectable, Mode } from '../../fake-verbs/control.js';
import { leftovers, live, type Outcome } from '../../fake-verbs/life.js';

const { EIO } = constants.errno;

const CM_FUNCTIONS = [
  'rdma_create_event_channel',
  'rdma_create_id',
  'rdma_destroy_id',
  'rdma_migrate_id',
  'rdma_bind_addr',
  'rdma_resolve_addr',
  'rdma_resolve_route',
  'rdma_set_option',
  'rdma_connect',
  'rdma_establish',
  'rdma_listen',
  'rdma_accept',
  'rdma_disconnect',
  'rdma_init_qp_attr',
  'rdma_get_cm_event',
] as const;

/** What libraries do on failure is theirs: the object that could not be closed stays. */
const STAYS: Readonly<Record<string, readonly string[]>> = {
  ibv_close_device: ['context'],
  ibv_destroy_comp_channel: ['context', 'channel'],
};

/** Errors that name neither call nor errno: libibverbs gives ibv_poll_cq none. */
const WITHOUT_ERRNO = /ibv_poll_cq failed/;
/** What fails because of what failed before; the first error names it. */
const CONSEQUENCE = /EBUSY|are left|feed th|steps failed/;

const fake = fakeVerbs();
const cm = loadCmFake();

/** How often a clean life calls each function. */
async function countCalls(): Promise<Map<string, number>> {
  fake.calls('ibv_alloc_pd');
  fake.clearInjections();
  const before = CM_FUNCTIONS.map((name) => cm.calls(name));
  assert.deepEqual(await live(), { errors: [], events: [] });
  const counts = new Map(injectable().map((name) => [name, fake.calls(name)]));
  CM_FUNCTIONS.forEach((name, i) => counts.set(name, cm.calls(name) - (before[i] ?? 0)));
  return counts;
}

/** Messages of an error and of what caused it. */
function textOf(error: unknown): string {
  const texts: string[] = [];
  for (let at = error; at instanceof Error && texts.length < 8; at = at.cause) {
    texts.push(at.message);
    if (at instanceof AggregateError) texts.push(...at.errors.map(textOf));
  }
  return texts.join(' <- ');
}

function checkErrors({ errors }: Outcome, name: string): void {
  for (const [i, error] of errors.entries()) {
    const text = textOf(error);
    const typed =
      DatError.isDatError(error) || (error instanceof Error && error.name === 'SpiError');
    assert.ok(typed, `not typed: ${String(error)}`);
    assert.doesNotMatch(text, /after \d+ ms/, 'nobody was told, and somebody waited');
    if (WITHOUT_ERRNO.test(text) || (i > 0 && CONSEQUENCE.test(text))) continue;
    // A name may have a suffix (ibv_reg_mr_iova), and opening a device makes its channel.
    assert.match(text, /ibv_|rdma_/, `${name}: no call is named: ${text}`);
    assert.match(text, /EIO/, `${name}: no errno is named: ${text}`);
  }
}

async function sweep(name: string, times: number): Promise<void> {
  for (let nth = 1; nth <= times; nth++) {
    fake.clearInjections();
    const before = leftovers();
    const refused = name.startsWith('rdma_')
      ? cm.inject(name, nth, EIO)
      : fake.inject(name, nth, EIO);
    assert.equal(refused, 0);
    checkErrors(await live(), name);
    const kinds = STAYS[name] ?? [];
    const mine = leftovers().filter((text) => !kinds.some((kind) => text.startsWith(kind)));
    const old = before.filter((text) => !kinds.some((kind) => text.startsWith(kind)));
    assert.deepEqual(mine, old, `call ${nth} of ${name}`);
  }
}

describe('verbs: every call fails once', () => {
  let counts: Map<string, number>;

  before(async function () {
    this.timeout(60_000);
    fake.restore();
    fake.setMode(Mode.IMMEDIATE);
    counts = await countCalls();
  });
  afterEach(() => fake.clearInjections());

  // 2.5 s a call is what one costs that leaves one side waiting for the other.
  const SPREAD = 24;
  for (const name of [...injectable(), ...CM_FUNCTIONS]) {
    it(name, async function () {
      this.timeout(300_000);
      const times = counts.get(name) ?? 0;
      if (times === 0) this.skip();
      await sweep(name, Math.min(times, SPREAD));
    });
  }
});
