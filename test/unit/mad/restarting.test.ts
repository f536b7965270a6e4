import assert from 'node:assert/strict';
import {
  AsyncEventType,
  nameOf,
  QpState,
  type QueuePair,
  WcStatus,
} from '../../../core/spi/index.js';
import { CmHcaPair } from '../../support/cm-hca-pair.js';
import { MadPair, type MadNode } from '../../support/mad-pair.js';

/** How QP1 of a node goes to ERR. */
const FAULTS: Readonly<Record<string, (node: MadNode) => void>> = {
  ERR: ({ qp1 }) => qp1.modify({ state: QpState.ERR }),
  'ERR, and told': ({ qp1 }) => {
    qp1.modify({ state: QpState.ERR });
    qp1.raise(AsyncEventType.QP_FATAL);
  },
  'ERR behind completions that are held': ({ qp1 }) => {
    qp1.holdCompletions = true;
    qp1.modify({ state: QpState.ERR });
  },
  'ERR behind a failed send': ({ qp1 }) => qp1.modify({ state: QpState.ERR }),
};

const REQUESTS = 4;
const STEP_US = 20;
const STEPS = 12;
const TIMEOUT_US = 400;

/** Requests under way in steps; after one of them the fault. Each send ends once. */
async function faultAfter(step: number, side: 'a' | 'b', fault: string): Promise<MadPair> {
  const pair = new MadPair({ a: { sendDepth: 2 } });
  const asker = pair.asker();
  pair.answerer();
  for (let at = 0; at < STEPS; at++) {
    const fails = at === step && fault === 'ERR behind a failed send';
    if (fails) pair[side].qp1.sendStatuses.push(WcStatus.LOC_QP_OP_ERR);
    if (at < REQUESTS) {
      for (const name of [`first ${at}`, `second ${at}`, `third ${at}`]) {
        asker.send(pair.ask(asker, name, { timeoutUs: TIMEOUT_US, retries: 1 }));
      }
    }
    if (at === step) FAULTS[fault]!(pair[side]);
    await pair.world.runFor(STEP_US);
    pair[side].qp1.releaseCompletions();
  }
  await pair.world.run();
  pair[side].qp1.sendStatuses.length = 0;
  return pair;
}

function endsOf(log: readonly string[]): Map<string, string[]> {
  const ends = new Map<string, string[]>();
  for (const line of log.filter((text) => !text.startsWith('response'))) {
    const [status = '', ...name] = line.split(' ');
    const key = name.join(' ');
    ends.set(key, [...(ends.get(key) ?? []), status]);
  }
  return ends;
}

const ENDS = [WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR, WcStatus.RESP_TIMEOUT_ERR].map((status) =>
  nameOf(WcStatus, status),
);

describe('MAD: QP1 that goes to ERR', () => {
  for (const fault of Object.keys(FAULTS)) {
    for (const side of ['a', 'b'] as const) {
      it(`${fault}, side ${side} (a asks, b answers): restarted`, async () => {
        for (let step = 0; step < STEPS; step++) {
          const pair = await faultAfter(step, side, fault);
          const ends = endsOf(pair.log);
          assert.equal(ends.size, 3 * REQUESTS, `${step}: ${pair.log.join()}`);
          for (const [name, statuses] of ends) {
            assert.equal(statuses.length, 1, `${step}: ${name} ${statuses.join()}`);
            const isKnown = ENDS.includes(statuses[0]!) || statuses[0] === 'LOC_QP_OP_ERR';
            assert.ok(isKnown, `${step}: ${name} ${statuses.join()}`);
          }
          assert.equal(pair[side].qp1.state, QpState.RTS, String(step));
          assert.equal(pair[side].mad.portCounters.restarts, 1, String(step));
          // The agents on both sides are what they were.
          pair.log.length = 0;
          const later = pair.a.mad.registerAgent({
            managementClass: 0x0b,
            classVersion: 1,
            methods: [],
            onReceive: ({ request }) => pair.log.push(`response ${String(request?.context)}`),
            onSend: ({ status }) => pair.log.push(nameOf(WcStatus, status)),
          });
          later.send(pair.ask(later, 'later', { timeoutUs: TIMEOUT_US }));
          await pair.world.run();
          assert.deepEqual(pair.log, ['response later', 'SUCCESS'], String(step));
          const closed = [pair.a.mad.close(), pair.b.mad.close()];
          await pair.world.run();
          await Promise.all(closed);
          for (const node of [pair.a, pair.b]) assert.equal(node.device.liveObjects, 0);
        }
      });
    }
  }

  it('a request that waits for its answer goes on waiting, and gets it', async () => {
    const pair = new MadPair();
    const asker = pair.asker();
    let answer = (): void => undefined;
    const agent = pair.b.mad.registerAgent({
      managementClass: 0x0a,
      classVersion: 1,
      methods: [1],
      onReceive: ({ data, source }) => {
        const response = data.slice();
        response[3] = 0x81;
        answer = () =>
          void agent.send({ destination: source, data: response, timeoutUs: 0, retries: 0 });
      },
      onSend: () => undefined,
    });
    asker.send(pair.ask(asker, 'patient', { timeoutUs: 1e6 }));
    await pair.world.runFor(100);
    for (const node of [pair.a, pair.b]) node.qp1.modify({ state: QpState.ERR });
    await pair.world.runFor(100);
    assert.deepEqual(pair.log, []);
    answer();
    await pair.world.run();
    assert.deepEqual(pair.log, ['response patient', 'SUCCESS patient']);
  });

  it('is given up, and everything returned, when it does not live', async () => {
    const pair = new MadPair();
    const asker = pair.asker();
    pair.a.qp1.refuse = QpState.RTR;
    pair.network.fate = () => [];
    asker.send(pair.ask(asker, 'waiting', { timeoutUs: 1e6 }));
    await pair.world.runFor(100);
    pair.a.qp1.modify({ state: QpState.ERR });
    await pair.world.run();
    assert.deepEqual(pair.log, ['WR_FLUSH_ERR waiting']);
    assert.throws(() => asker.send(pair.ask(asker, 'late')), /QP1 of the device is gone/);
  });

  it('is not restarted for ever', async () => {
    const pair = new MadPair();
    pair.asker();
    for (let i = 0; i < 20; i++) {
      pair.a.qp1.modify({ state: QpState.ERR });
      await pair.world.runFor(100);
    }
    assert.equal(pair.a.mad.portCounters.restarts, 8);
    assert.equal(pair.a.qp1.state, QpState.ERR);
  });
});

describe('MAD: QP1 of the software HCA that goes to ERR', () => {
  it('connects, whenever that happens and on whichever side', () => {
    for (const side of ['client', 'server'] as const) {
      for (let afterUs = 0; afterUs < 60; afterUs += 3) {
        const pair = new CmHcaPair();
        pair.listen();
        pair.client.connect(pair.server);
        pair.run(afterUs);
        qp1Of(pair[side].mad).modify({ state: QpState.ERR });
        pair.run(60_000_000);
        const where = `${side} after ${afterUs} us`;
        assert.deepEqual(pair.client.types, ['established'], where);
        assert.deepEqual(pair.server.types, ['established'], where);
        assert.equal(pair[side].mad.portCounters.restarts, 1, where);
      }
    }
  });
});

/** What a device does to QP1 by itself, no call of the module does. */
function qp1Of(mad: object): QueuePair {
  return (mad as { port: { qp1: { qp: QueuePair } } }).port.qp1.qp;
}
