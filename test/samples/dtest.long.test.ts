import assert from 'node:assert/strict';

import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';

import { parseOptions } from '../../samples/dtest/options.js';
import { runClient, runServer } from '../../samples/dtest/test-run.js';
import { type Outcome, Program, runSample } from './program.js';
import { inBlock0, loopback } from '../support/loopback.js';

const PASSED = /^DAPL Test Complete\. PASSED$/m;

describe('sample dtest', () => {
  describe('as two processes', () => {
    const [SERVER, CLIENT] = [loopback(77, 1), loopback(77, 2)] as const;
    const programs: Program[] = [];

    async function pair(serving: string[], asking = serving): Promise<[Outcome, Outcome]> {
      const server = new Program('dtest', '-I', SERVER, ...serving);
      programs.push(server);
      await server.printed(/waiting for client connection/);
      const client = new Program('dtest', '-h', SERVER, '-I', CLIENT, ...asking);
      programs.push(client);
      return Promise.all([server.ended, client.ended]);
    }

    afterEach(async () => {
      const left = programs.splice(0);
      for (const program of left) program.kill('SIGKILL');
      await Promise.all(left.map((program) => program.ended));
    });

    for (const letters of ['-b 10001 -B 30', '-w -b 3000 -B 25 -S 4', '-D -b 2000 -B 12']) {
      it(`passes with ${letters}`, async () => {
        for (const { code, stdout, stderr } of await pair(letters.split(' '))) {
          assert.deepEqual([code, stderr], [0, '']);
          assert.match(stdout, PASSED);
        }
      });
    }

    it('says that the lengths differ, at both sides', async () => {
      const [server, client] = await pair(['-b', '100'], ['-b', '200']);
      assert.deepEqual([server.code, client.code], [1, 1]);
      assert.match(server.stderr + client.stderr, /the peer has \d00 bytes, and this \d00: use -b/);
    });

    it('says what is wrong with the command line', async () => {
      const failures: [string[], RegExp][] = [
        [[], /^dtest: a server needs -I, its own address; a client needs -h\n$/],
        [
          ['-h', loopback(77, 9)],
          /^dtest: no server of dtest at 127\.0\.77\.9: connect ECONNREFUSED/,
        ],
      ];
      for (const [args, sentence] of failures) {
        const { code, stderr } = await runSample('dtest', ...args);
        assert.match(inBlock0(stderr), sentence, args.join(' '));
        assert.equal(code, 1);
      }
    });
  });

  describe('in one process, over a fabric that is simulated', () => {
    const letters = [
      '-b 5000 -B 20',
      '-b 5000 -B 20 -u -p',
      '-w -u -b 100 -B 9',
      '-W -B 300',
      '-D -B 6 -b 300 -a',
      '-D -B 6 -i 100 -b 350',
    ];
    for (const words of letters) {
      it(`passes with ${words}, with packets lost`, async () => {
        const fabric = new Fabric({ seed: 3, autoRun: true, link: { lossPercent: 1 } });
        const open = (address: string): Promise<Ia> => openIa(mock({ fabric, address }));
        const [server, client] = await Promise.all(['192.0.2.1', '192.0.2.2'].map(open));
        assert.ok(server !== undefined && client !== undefined);
        const steps = parseOptions(['node', 'dtest', '-I', '192.0.2.1', ...words.split(' ')]);
        const told: string[] = [];
        const print = (line: string): void => void told.push(line);
        // The client does not wait until the server listens.
        await Promise.all([
          runClient(client, '192.0.2.1', steps, print),
          runServer(server, steps, print, () => Promise.resolve()),
        ]);
        assert.equal(told.filter((line) => PASSED.test(line)).length, 2, told.join('\n'));
        await Promise.all([server.close(), client.close()]);
      });
    }
  });
});
