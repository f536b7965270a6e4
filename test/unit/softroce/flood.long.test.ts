/**
 * A flood over real sockets: 50,000 messages at 5,000 a second, from an address of its own. What is
 * claimed is who survives and how many are answered; how fast things go is the machine's business.
 */
import assert from 'node:assert/strict';
import { runFlood } from '../../../bench/flood/run.js';
import type { FloodKind } from '../../../bench/flood/datagrams.js';
import { networkOf } from '../../support/loopback.js';

const PER_SECOND = 5000;

describe('softroce: floods of CM messages on loopback', function () {
  this.timeout(240_000);

  /**
   * Of what is sent in a while, that is answered at most: what is half open has its REP repeated
   * so many times a second, however long the machine takes for all of it.
   */
  const floods: readonly (readonly [FloodKind, seconds: number, answered: number])[] = [
    ['repeated', 10, 0.08],
    ['fresh', 2, 0.4],
  ];
  for (const [kind, seconds, answered] of floods) {
    it(`${PER_SECOND * seconds} REQs, ${kind}: a connection goes on, others are made`, async () => {
      const network = networkOf(28);
      const { flooded } = await runFlood({
        kind,
        perSecond: PER_SECOND,
        seconds,
        network,
        udpPort: 4791,
      });
      const { isConnected, pings, connects, failedConnects } = flooded;
      assert.deepEqual({ isConnected, failedConnects }, { isConnected: true, failedConnects: 0 });
      assert.ok(pings > 0 && connects > 0, `${pings} messages, ${connects} connects`);
      // Beside the answers to the flood: one message a ping, and REP, DREP, DREQ of connections.
      const answers = flooded.sent - pings - 3 * connects;
      const most = answered * PER_SECOND * Math.max(seconds, flooded.seconds);
      assert.ok(answers <= most, `${answers} answers of ${most} in ${flooded.seconds} s`);
    });
  }
});
