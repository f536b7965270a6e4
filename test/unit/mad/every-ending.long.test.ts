/** A send, and whatever may end it, in every order. */
import assert from 'node:assert/strict';
import { AsyncEventType, WcStatus } from '../../../core/spi/index.js';
import { MadPair } from '../../support/mad-pair.js';

describe('MAD: every interleaving of a request with what may end it', () => {
  type Step = 'complete' | 'respond' | 'timeout' | 'cancel' | 'unregister' | 'fail' | 'tear';
  const STEPS: readonly Step[] = [
    'complete',
    'respond',
    'timeout',
    'cancel',
    'unregister',
    'fail',
    'tear',
  ];

  const run = async (order: readonly Step[]): Promise<string[]> => {
    const pair = new MadPair();
    const agent = pair.asker();
    const { qp1, device, address } = pair.a;
    qp1.holdCompletions = true;
    if (order[0] === 'fail') qp1.sendStatuses.push(WcStatus.LOC_QP_OP_ERR);
    const request = pair.ask(agent, 'one', { timeoutUs: 1_000, retries: 1 });
    const handle = agent.send(request);
    const answer = request.data.slice();
    answer[3] = 0x81;
    pair.network.fate = () => [];
    const unregister = (): void =>
      void agent.unregister().then(() => pair.log.push('unregistered'));
    const steps: Record<Step, () => void> = {
      complete: () => qp1.releaseCompletions(),
      respond: () => device.receive(answer, pair.b.address.gid, address.gid),
      timeout: () => void pair.world.runFor(1_001),
      cancel: () => agent.cancel(handle),
      unregister: () => unregister(),
      fail: () => qp1.releaseCompletions(),
      tear: () => qp1.raise(AsyncEventType.QP_FATAL),
    };
    for (const step of order) {
      steps[step]();
      if (step === 'timeout') await pair.world.runFor(1_001);
      else await pair.world.runFor(1);
    }
    qp1.releaseCompletions();
    unregister();
    await pair.world.run();
    assert.equal(pair.world.activeTimers, 0, order.join());
    return pair.log;
  };

  it('reports once, a response before it, nothing after unregister', async () => {
    for (const order of arrangements(STEPS, 4)) {
      const log = await run(order);
      const reports = log.filter((line) => /^[A-Z]/.test(line));
      const responses = log.filter((line) => line.startsWith('response'));
      const where = `${order.join()}: ${log.join()}`;
      assert.equal(reports.length, 1, where);
      assert.ok(responses.length <= 1, where);
      if (responses.length === 1) assert.ok(log.indexOf('response one') < log.length - 1, where);
      if (responses.length === 1) assert.deepEqual(log.slice(0, 2), ['response one', reports[0]]);
      assert.equal(log.at(-1), 'unregistered', where);
      assert.ok(log.indexOf('unregistered') >= responses.length + reports.length, where);
    }
  });
});

/** All ordered choices of up to `length` different items. */
function arrangements<T>(items: readonly T[], length: number): T[][] {
  if (length === 0) return [[]];
  const shorter = arrangements(items, length - 1);
  const longer = shorter
    .filter((order) => order.length === length - 1)
    .flatMap((order) => items.filter((i) => !order.includes(i)).map((i) => [...order, i]));
  return [...shorter, ...longer];
}
