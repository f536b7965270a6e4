import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { gidFromIp } from '../../core/spi/index.js';
import { openDgramPort } from '../../providers/softroce/dgram/port.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort, SocketPortOptions } from '../../providers/softroce/port/port-options.js';
import {
  describePackets,
  header,
  pattern,
  psnOf,
  receiveSome,
  sendAll,
} from '../../plugins/testing/port/harness.js';
import { loopback, testPort } from '../support/loopback.js';

const quiet = { onReadable() {}, onWritable() {}, onReport() {} };
const sibling = (name: string): string => join(import.meta.dirname, name);

describe('native port and the process', () => {
  const start = async (mode: string): Promise<ChildProcess> => {
    const child = fork(sibling('lifecycle-program.js'), [mode], { silent: true });
    child.disconnect();
    assert.ok(child.stdout);
    await once(child.stdout, 'data');
    return child;
  };

  for (const mode of ['close', 'idle']) {
    it(`lets it end: ${mode}`, async () => {
      const child = await start(mode);
      assert.deepEqual(await once(child, 'exit'), [0, null]);
    });
  }

  it('keeps it alive when told to', async () => {
    const child = await start('alive');
    await delay(200);
    assert.equal(child.exitCode, null);
    child.kill();
    assert.deepEqual(await once(child, 'exit'), [null, 'SIGTERM']);
  });
});

describe('native port in a worker thread', () => {
  const exchange = async (): Promise<Worker> => {
    const worker = new Worker(sibling('lifecycle-worker.js'));
    await once(worker, 'message');
    const port = openNativePort({ addresses: [loopback(0, 53)], udpPort: testPort(31) });
    try {
      const path = port.addPath(gidFromIp(loopback(0, 52)), 0);
      await sendAll(
        port,
        [1, 5, 9].map((psn) => ({ path, header: header(psn) })),
      );
      assert.deepEqual((await receiveSome(port, 3)).map(psnOf), [2, 6, 10]);
    } finally {
      await port.close();
    }
    return worker;
  };

  it('works, and closes', async () => {
    const worker = await exchange();
    const exit = once(worker, 'exit');
    worker.postMessage('close');
    assert.deepEqual(await exit, [0]);
  });

  it('may be left open when the thread is terminated', async () => {
    // The port of a round that was still open would have the address, and the next one would fail.
    for (let round = 0; round < 3; round++) {
      const worker = await exchange();
      assert.equal(await worker.terminate(), 1);
    }
  });
});

const kinds: readonly [string, (options: SocketPortOptions) => Promise<SocketPort>][] = [
  ['native', (options) => Promise.resolve().then(() => openNativePort(options))],
  ['dgram', openDgramPort],
];

for (const [kind, open] of kinds) {
  describe(`opening a ${kind} port`, () => {
    it('names a busy port', async () => {
      const port = await open({ addresses: [loopback(0, 54)], udpPort: testPort(32) });
      await assert.rejects(open({ addresses: [loopback(0, 54)], udpPort: testPort(32) }), {
        code: 'EADDRINUSE',
        message: `${loopback(0, 54)}, UDP port ${testPort(32)} is in use by another program`,
      });
      await port.close();
      await (await open({ addresses: [loopback(0, 54)], udpPort: testPort(32) })).close();
    });

    it('leaves nothing open when one of several addresses fails', async () => {
      const addresses = [loopback(0, 55), '203.0.113.9'];
      await assert.rejects(open({ addresses, udpPort: testPort(33) }), {
        code: 'EADDRNOTAVAIL',
        message: '203.0.113.9 is not an address of this machine',
      });
      await (await open({ addresses: [loopback(0, 55)], udpPort: testPort(33) })).close();
    });

    it('refuses options out of range', async () => {
      const addresses = [loopback(0, 56)];
      const bad: readonly SocketPortOptions[] = [
        { addresses: [] },
        { addresses: ['localhost'] },
        { addresses: [new Uint8Array(4)] },
        { addresses: Array.from({ length: 65 }, () => '127.0.0.1') },
        { addresses, udpPort: 0 },
        { addresses, udpPort: 65536 },
        { addresses, udpPort: 1.5 },
        { addresses, mtuBytes: 1000 },
        { addresses, mtuBytes: 8192 },
      ];
      for (const options of bad) await assert.rejects(open(options), { code: 'EINVAL' });
    });

    it('keeps to the limit of the path MTU that was asked for', async () => {
      const port = await open({
        addresses: [loopback(0, 56)],
        udpPort: testPort(34),
        mtuBytes: 1024,
      });
      assert.equal(port.mtuBytes, 1024);
      await port.close();
    });

    it('takes two ports in one process, independent of each other', async () => {
      const one = await open({ addresses: [loopback(0, 57)], udpPort: testPort(35) });
      const two = await open({ addresses: [loopback(0, 58)], udpPort: testPort(35) });
      const path = one.addPath(gidFromIp(loopback(0, 58)), 0);
      one.watch(quiet);
      two.watch(quiet);
      await one.close();
      const again = await open({ addresses: [loopback(0, 57)], udpPort: testPort(35) });
      again.addPath(gidFromIp(loopback(0, 58)), 0);
      await sendAll(again, [{ path, header: header(3) }]);
      assert.deepEqual((await receiveSome(two, 1)).map(psnOf), [3]);
      await again.close();
      await two.close();
    });
  });
}

describe('native port under load', () => {
  it('counts what the full receive buffer made the system drop', async () => {
    const a = openNativePort({ addresses: [loopback(0, 59)], udpPort: testPort(36) });
    const b = openNativePort({ addresses: [loopback(0, 60)], udpPort: testPort(36) });
    const memory = pattern(4096);
    const region = a.addRegion(memory.buffer, 0, 4096);
    const path = a.addPath(gidFromIp(loopback(0, 60)), 0);
    const segments = [{ region, offset: 0, length: 4096 }];
    const burst = Array.from({ length: 150 }, (_, psn) => ({
      path,
      header: header(psn),
      segments,
    }));
    describePackets(a, burst);
    for (let i = 0; i < 60; i++) assert.equal(a.send(0, burst.length), burst.length);
    let received = 0;
    for (let packets = b.receive(); packets > 0; packets = b.receive()) received += packets;
    assert.ok(b.counters.droppedDatagrams > 0, 'the buffer was not full');
    assert.equal(b.counters.receivedTrains + b.counters.droppedDatagrams, a.counters.sentTrains);
    assert.equal(b.counters.receivedPackets, received);
    const dropped = b.counters.droppedDatagrams;
    await b.close();
    assert.equal(b.counters.droppedDatagrams, dropped);
    await a.close();
  });
});
