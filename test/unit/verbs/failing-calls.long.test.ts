// Every call of libibverbs and librdmacm that the addon can make fails, wherever it occurs in a
// life and in every way that drivers have: the consumer is told, nothing hangs, nothing is left,
// and the connections of others carry on.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { DatError } from 'dapl';
import { WcStatus, WrOpcode } from '../../../core/spi/wire/ib.js';
import { loadCmFake } from '../../fake-verbs/cm-host.js';
import { Failure, Feature, fakeVerbs, injectable, Mode } from '../../fake-verbs/control.js';
import { leftovers, live, type Outcome } from '../../fake-verbs/life.js';
import { addonOverFake, Pair } from '../../fake-verbs/pair.js';
import { xrcLife } from '../../fake-verbs/scenes.js';
import { drain, postSends } from '../../fake-verbs/work.js';

const { EIO } = constants.errno;

/** Errors that name neither call nor errno: libibverbs gives ibv_poll_cq none. */
const WITHOUT_ERRNO = /ibv_poll_cq failed/;
/** What fails because of what failed before; the first error names it. */
const CONSEQUENCE = /EBUSY|are left|feed th|steps failed/;
/** Nobody needs to be told: what a failure of it leaves to do is done in another way. */
const MADE_GOOD: readonly string[] = [
  'ibv_query_qp', // what we know of the state stands
  'rdma_destroy_id', // once more, and the log says so
  'rdma_disconnect', // the end of the identifier tells the peer
  'rdma_get_cm_event', // once more, and the log says so
  'rdma_notify', // the kernel learns it by the RTU, or by its own event
];
/** They return nothing, or cannot fail. */
const NEVER_FAIL: readonly string[] = [
  'ibv_free_device_list',
  'ibv_get_device_name',
  'ibv_ack_async_event',
  'ibv_ack_cq_events',
  'rdma_destroy_event_channel',
  'rdma_ack_cm_event',
];

const fake = fakeVerbs();
const cm = loadCmFake();

/** What the addon looks up by name, and what is behind the context that a device gives it. */
function callable(): string[] {
  const addon = addonOverFake();
  const byName = [...addon.functions('verbs'), ...addon.functions('rdmacm')];
  const behindContext = injectable().filter((name) => fake.isExported(name) === 0);
  return [...byName, ...behindContext].filter((name) => !NEVER_FAIL.includes(name));
}

const isCm = (name: string): boolean => name.startsWith('rdma_');
const callsOf = (name: string): number => (isCm(name) ? cm.calls(name) : fake.calls(name));

interface Scenario {
  readonly name: string;
  run(): Promise<Outcome>;
}

const OLD_KERNEL = Feature.ALL & ~Feature.GID_TYPES;
let keys = 0;

const SCENARIOS: readonly Scenario[] = [
  { name: 'a life', run: live },
  {
    name: 'on a kernel that knows no types of GIDs',
    async run() {
      for (const device of ['fake0', 'fake1']) fake.setFeatures(device, OLD_KERNEL);
      try {
        return await live();
      } finally {
        for (const device of ['fake0', 'fake1']) fake.setFeatures(device, Feature.ALL);
      }
    },
  },
  {
    name: 'XRC',
    async run() {
      const errors = await xrcLife(`failing ${process.pid} ${keys++}`);
      return { errors, events: [] };
    },
  },
];

/** How often each function is called by a scenario that nothing fails in. */
async function countCalls(scenario: Scenario): Promise<Map<string, number>> {
  fake.calls('ibv_alloc_pd');
  fake.clearInjections();
  const before = callable().map(callsOf);
  const outcome = await scenario.run();
  assert.deepEqual(outcome, { errors: [], events: [] }, scenario.name);
  return new Map(callable().map((name, i) => [name, callsOf(name) - (before[i] ?? 0)]));
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
    assert.match(text, /ibv_|rdma_/, `${name}: no call is named: ${text}`);
    assert.match(text, /EIO/, `${name}: no errno is named: ${text}`);
  }
}

/** @returns whether anybody was told */
async function failOnce(
  scenario: Scenario,
  name: string,
  nth: number,
  how: Failure,
): Promise<boolean> {
  fake.clearInjections();
  fake.setFailure(how);
  const before = leftovers();
  const refused = isCm(name) ? cm.inject(name, nth, EIO) : fake.inject(name, nth, EIO);
  assert.equal(refused, 0);
  const outcome = await scenario.run();
  checkErrors(outcome, name);
  assert.deepEqual(leftovers(), before, `call ${nth} of ${name}`);
  return outcome.errors.length + outcome.events.length > 0;
}

// Somebody who has nothing to do with it.
const BYSTANDER = 'fake2';

function startBystander(): Pair {
  fake.addDevice(BYSTANDER, 1);
  const gid = Buffer.from('00000000000000000000ffffc6336403', 'hex');
  fake.setGid(BYSTANDER, 1, 0, gid, 2);
  return new Pair({ name: BYSTANDER });
}

function checkBystander(pair: Pair): void {
  fake.clearInjections();
  postSends(pair.a, {
    opcode: WrOpcode.RDMA_WRITE,
    segments: [pair.at(0, 64)],
    remote: pair.remote(1024),
  });
  const statuses = drain(pair.queues['send A']).map(({ status }) => status);
  assert.deepEqual(statuses, [WcStatus.SUCCESS]);
  assert.deepEqual(pair.events, []);
}

describe('verbs: every call fails once', () => {
  const counts = new Map<Scenario, Map<string, number>>();
  let bystander: Pair;

  before(async () => {
    fake.restore();
    fake.setMode(Mode.IMMEDIATE);
    bystander = startBystander();
    for (const scenario of SCENARIOS) counts.set(scenario, await countCalls(scenario));
  });
  afterEach(() => checkBystander(bystander));
  after(async () => {
    await bystander.device.close();
    fake.restore();
  });

  // A failure that leaves one side waiting for the other costs a quarter of a second.
  const SPREAD = 24;
  for (const name of callable()) {
    it(name, async function () {
      this.timeout(300_000);
      const scenario = SCENARIOS.find((each) => (counts.get(each)?.get(name) ?? 0) > 0);
      assert.ok(scenario, 'no scenario reaches it');
      const all = counts.get(scenario)?.get(name) ?? 0;
      const times = Math.min(all, SPREAD);
      let told = 0;
      for (let i = 1; i <= times; i++) {
        const nth = Math.ceil((i * all) / times);
        told += Number(await failOnce(scenario, name, nth, Failure.DOCUMENTED));
      }
      const others = isCm(name) ? [] : [Failure.MINUS_ONE, Failure.NEGATIVE, Failure.SILENT];
      for (const how of others) told += Number(await failOnce(scenario, name, 1, how));
      assert.equal(told > 0, !MADE_GOOD.includes(name), `told ${told} times of ${times}`);
    });
  }
});
