import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { nativeAddonProblem } from '../../providers/softroce/port/native-addon.js';
import { longIt } from '../support/lane.js';
import { loopback } from '../support/loopback.js';

const PINGS = 3000;
const PROGRAM = join(import.meta.dirname, 'asleep-program.js');
const [SERVER, CLIENT] = [loopback(0, 171), loopback(0, 172)];

interface Counted {
  readonly turns: number;
  readonly inVain: number;
}

async function said(child: ChildProcess): Promise<unknown> {
  const [message] = (await once(child, 'message')) as [unknown];
  return message;
}

describe("a process with polling: 'event' sleeps from message to message", function () {
  this.timeout(30_000);
  before(() => assert.equal(nativeAddonProblem(), undefined));

  // Timers of probes turn the loop once in 2 ms; over UDP the ACK of an answer may come by itself.
  for (const [kind, most] of [
    ['shm', 1.1],
    ['udp', 2.1],
  ] as const) {
    const test = kind === 'shm' ? it : longIt;
    test(`${kind}: ${String(most)} turns of the event loop a message at most`, async () => {
      const rest = [String(PINGS), kind];
      const server = fork(PROGRAM, ['server', SERVER, CLIENT, ...rest]);
      assert.equal(await said(server), 'up');
      const client = fork(PROGRAM, ['client', CLIENT, SERVER, ...rest]);
      const counts = (await Promise.all([said(server), said(client)])) as Counted[];
      for (const { turns, inVain } of counts) {
        const a = `${String(turns)} turns, ${String(inVain)} in vain, for ${String(PINGS)} pings`;
        assert.ok(turns <= PINGS * most, a);
        assert.ok(turns > PINGS / 2, `the loop has turned for them: ${a}`);
      }
      await Promise.all([once(server, 'exit'), once(client, 'exit')]);
    });
  }
});
