import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Ia, openIa } from '../../core/index.js';
import { softroce } from '../../providers/softroce/index.js';
import { Side } from './talker.js';
import type { VictimEnd, VictimMood, VictimPlan } from './victim.js';
import { establish, startVictim } from './victims.js';
import { loopback } from '../support/loopback.js';
import { patience } from '../support/patience.js';

const [OWN, VICTIM] = [loopback(44, 11), loopback(44, 12)] as const;
const OTHER_VICTIM = loopback(44, 13);
const CONN_QUAL = 4400;
/** On an idle machine: far less than any retry or keep-alive would need. */
const PROMPT_MS = 2500;

/** More than the MAD module has on QP1 at a time. */
const MANY = 160;

const ENDS: readonly VictimEnd[] = ['exit', 'throw', 'end', 'exit in an upcall'];

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

const isSignal = (end: VictimEnd | NodeJS.Signals): end is NodeJS.Signals => end.startsWith('SIG');

const ALL = ['DISCONNECTED', 'DISCONNECTED', 'DISCONNECTED'];

describe('a process that ends with connections open', () => {
  let ia: Ia;
  before(async () => void (ia = await openIa(softroce({ addresses: [OWN], shm: false }))));
  after(() => ia.close());

  /** What its peers have heard soon after it has ended in that way. */
  async function lastWords(
    end: VictimEnd | NodeJS.Signals,
    options: Partial<VictimPlan>,
    mood?: VictimMood,
  ): Promise<(string | undefined)[]> {
    const plan: VictimPlan = {
      role: 'connect',
      own: VICTIM,
      peer: OWN,
      connQual: CONN_QUAL,
      phase: 'idle',
      moves: false,
      connections: 3,
      port: 'native',
      attributes: {},
      ...options,
    };
    const victim = startVictim(plan);
    const quiet = await establish(new Side(ia), plan, victim);
    if (mood !== undefined) {
      victim.tell(mood);
      await victim.hears('pong');
    }
    const endMs = performance.now() + patience(PROMPT_MS);
    const exited = once(victim.child, 'exit');
    if (isSignal(end)) victim.child.kill(end);
    else victim.tell(end);
    if (mood !== 'ignores signals') {
      assert.equal((await exited)[1], isSignal(end) ? end : null);
    }
    while (quiet.some(({ ended }) => ended === undefined)) {
      if (performance.now() > endMs) break;
      await delay(2);
    }
    const heard = quiet.map(({ ended }) => ended);
    for (const talker of quiet) if (talker.ended === undefined) talker.ep.disconnect();
    await victim.end();
    return heard;
  }

  for (const end of ENDS) {
    it(`tells its peers, whom it has called or who have called: ${end}`, async () => {
      const heard = await Promise.all([
        lastWords(end, {}),
        lastWords(end, { role: 'accept', own: OTHER_VICTIM, connQual: CONN_QUAL + 10 }),
      ]);
      assert.deepEqual(heard, [ALL, ALL]);
    });
  }

  for (const signal of SIGNALS) {
    it(`tells its peers, whom it has called or who have called: ${signal}`, async () => {
      const heard = await Promise.all([
        lastWords(signal, {}),
        lastWords(signal, { role: 'accept', own: OTHER_VICTIM, connQual: CONN_QUAL + 10 }),
      ]);
      assert.deepEqual(heard, [ALL, ALL]);
    });
  }

  it('tells them by a signal though its event loop stands still', async () => {
    assert.deepEqual(await lastWords('SIGTERM', { connections: MANY }, 'stands still'), [
      ...Array.from({ length: MANY }, () => 'DISCONNECTED'),
    ]);
  });

  it('tells nothing by a signal that the application listens to', async () => {
    const heard = await lastWords('SIGTERM', {}, 'ignores signals');
    assert.deepEqual(heard, [undefined, undefined, undefined]);
  });

  it('tells more of them than MADs go at a time', async () => {
    const heard = await lastWords('exit', { connections: MANY });
    assert.equal(heard.filter((text) => text === 'DISCONNECTED').length, MANY);
  });

  it('tells them over node:dgram too', async () => {
    const heard = await lastWords('exit', { port: 'dgram' });
    assert.deepEqual(heard, ALL);
  });

  it('tells them in the middle of a stream', async () => {
    const heard = await lastWords('exit', { phase: 'write', moves: true });
    assert.deepEqual(heard, ALL);
  });
});
