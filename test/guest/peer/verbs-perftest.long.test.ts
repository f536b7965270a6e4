// Our client of perftest's programs against our server of them, over softroce: what both say of the
// exchange is judged in the guest, by perftest itself.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { loopback } from '../../support/loopback.js';

const PROGRAM = fileURLToPath(new URL('verbs-perftest.js', import.meta.url));
const [SERVER, CLIENT] = [loopback(0, 64), loopback(0, 65)];

describe("guest: our side of perftest's programs", function () {
  this.timeout(60_000);
  const running = new Set<ChildProcess>();

  afterEach(() => {
    for (const child of running) child.kill('SIGKILL');
    running.clear();
  });

  interface Talking {
    readonly child: ChildProcess;
    readonly text: () => string;
  }

  function start(...words: readonly string[]): Talking {
    const child = spawn(process.execPath, [PROGRAM, 'softroce', ...words], { stdio: 'pipe' });
    running.add(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    }
    return { child, text: () => text };
  }

  for (const test of ['ib_send_lat', 'ib_write_lat', 'ib_write_bw', 'ib_read_bw']) {
    it(test, async () => {
      const words = [test, '5000', '200', '1024'];
      const server = start('server', SERVER, ...words);
      await once(server.child.stdout ?? server.child, 'data');
      const client = start('client', SERVER, ...words, CLIENT);
      const [[served], [asked]] = (await Promise.all([
        once(server.child, 'close'),
        once(client.child, 'close'),
      ])) as [[number], [number]];
      assert.deepEqual([served, asked], [0, 0], `${server.text()}${client.text()}`);
      assert.equal(client.text(), 'done\n');
      assert.match(server.text(), /^listening\n[^]*done\n$/);
      if (test.endsWith('_lat')) return;
      assert.match(server.text(), /^it says 200 of 5000 B, on average \d+\.\d\d MiB\/s$/m);
    });
  }

  it('a program that is none of them is refused', async () => {
    const refused = start('server', SERVER, 'ib_atomic_bw', '8', '1', '1024');
    const [code] = (await once(refused.child, 'close')) as [number];
    assert.equal(code, 1);
    assert.match(refused.text(), /no program ib_atomic_bw/);
  });
});
