import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Gid, gidEquals, gidFromIp, isIpv4Gid, RX } from 'dapl/spi';
import { PATIENCE_MS } from '../suite/pace.js';
import {
  assertDelivered,
  gidOf,
  nothing,
  type OpenBench,
  packet,
  portGroup,
} from './bench-pair.js';
import { describePackets, psnOf, sendAll, takeReceived, until } from './harness.js';
import { assertNoMoreThan } from './resources.js';

const MANY_PACKETS = 200;
const LATE_MS = 60;

export const paths = portGroup('Paths', (claim) => {
  claim('counts paths', async (bench) => {
    const { a, b, path } = bench;
    assert.equal(a.addPath(gidOf(b), 0, bench.pathBytes), path);
    a.removePath(path);
    await assertDelivered(bench, [packet(bench, 1, 16)]);
    a.removePath(path);
    const gone = 'of a path whose users have all let go';
    assert.throws(() => a.removePath(path), RangeError, `removePath ${gone}`);
    describePackets(a, [packet(bench, 1, 16)]);
    assert.throws(() => a.send(0, 1), RangeError, `send ${gone}`);
  });

  claim('refuses a path to the other family, and from an address that it has not', ({ a }) => {
    const other = gidFromIp(isIpv4Gid(gidOf(a)) ? '::1' : '127.0.0.1');
    assert.throws(() => a.addPath(other, 0), RangeError, 'a path to the other family');
    const local = a.gids.length;
    assert.throws(() => a.addPath(gidOf(a), local), RangeError, `local address ${local}`);
  });
});

export const handlers = portGroup('Handlers', (claim) => {
  claim('calls onReadable for what arrives, but never inside a call', async (bench) => {
    let readable = 0;
    const received: number[] = [];
    bench.b.watch({
      ...nothing,
      onReadable() {
        readable++;
        received.push(...takeReceived(bench.b).map(psnOf));
      },
    });
    bench.b.setProcessHold(true);
    for (let psn = 0; psn < 20; psn++) {
      describePackets(bench.a, [packet(bench, psn, 100)]);
      assert.equal(bench.a.send(0, 1), 1);
      bench.b.setProcessHold(true);
      await delay(0);
    }
    await until(() => received.length === 20, 'all packets');
    assert.deepEqual(
      received,
      Array.from({ length: 20 }, (_, psn) => psn),
    );
    assert.ok(readable > 0);
  });

  claim('tells again of what a call had no room for', async (bench) => {
    const { a, b } = bench;
    const count = b.rxPackets.length / RX.WORDS + 10;
    // A port that takes so many more packets at once may lose some.
    if (count > MANY_PACKETS) return;
    const received: number[] = [];
    let takes = false;
    const take = (): unknown => received.push(...takeReceived(b).map(psnOf));
    b.watch({ ...nothing, onReadable: () => takes && take() });
    const psns = Array.from({ length: count }, (_, psn) => psn);
    await sendAll(
      a,
      psns.map((psn) => packet(bench, psn, 8)),
    );
    // Until all have arrived; before that, nothing is left over.
    await delay(10);
    takes = true;
    take();
    await until(() => received.length >= count, 'all packets');
    assert.deepEqual(received, psns);
  });

  claim(
    'hears that nothing listens at a destination',
    async (bench) => {
      const silent = gidFromIp(bench.silentAddress ?? '');
      const heard: Gid[] = [];
      bench.a.watch({
        ...nothing,
        onReport(report) {
          assert.equal(report.type, 'port-unreachable');
          heard.push(report.gid);
        },
      });
      const path = bench.a.addPath(silent, 0);
      for (let psn = 0; psn < 50; psn++) {
        describePackets(bench.a, [{ ...packet(bench, psn, 10), path }]);
        assert.equal(bench.a.send(0, 1), 1);
        bench.a.receive();
      }
      await until(() => heard.length > 0, 'onReport');
      assert.ok(heard.every((gid) => gidEquals(gid, silent)));
      assert.ok(heard.length < 10, 'it is told again and again');
      await assertDelivered(bench, [packet(bench, 1, 16)]); // the port works on
    },
    ['unreachable'],
  );
});

export const closing = portGroup('Closing', (claim) => {
  claim('closes in the middle of things, once', async (bench) => {
    let calls = 0;
    let closing: Promise<void> | undefined;
    bench.b.watch({
      ...nothing,
      onReadable() {
        calls++;
        closing ??= bench.b.close();
      },
    });
    const specs = Array.from({ length: 50 }, (_, psn) => packet(bench, psn, 1024));
    await sendAll(bench.a, specs);
    await until(() => closing !== undefined, 'onReadable');
    await Promise.all([closing, bench.b.close()]);
    assert.equal(calls, 1);
    assert.equal(bench.b.receive(), 0);
    // A timer that the port left behind would fire by then.
    await delay(LATE_MS);
    assert.equal(calls, 1);
  });

  claim('can be used, without effect, when closed', async (bench) => {
    await bench.a.close();
    describePackets(bench.a, [packet(bench, 0, 64)]);
    assert.equal(bench.a.send(0, 1), 1);
    assert.equal(bench.a.receive(), 0);
    assert.doesNotThrow(() => {
      bench.a.setProcessHold(true);
      bench.a.readClock?.();
      for (let times = 0; times < 2; times++) {
        bench.a.removeRegion(bench.region);
        bench.a.removePath(bench.path);
      }
      bench.a.leaveGroup?.(77);
      bench.a.dropExitPacket?.(77);
    });
    await bench.a.close();
  });
});

/** A process without pending work ends at once. */
const ENDS_WITHIN_MS = Math.min(PATIENCE_MS, 3000);
const STAYS_MS = 200;

/** Inline, since a package may be one bundle and have no such file. */
const PROGRAM = `
const [, module, family, mode] = process.argv;
const pair = await (await import(module)).fixture.openPair(family);
const quiet = { onReadable() {}, onWritable() {}, onReport() {} };
for (const port of [pair.a, pair.b]) {
  port.watch(quiet);
  port.setProcessHold(true);
  if (mode === 'idle') port.setProcessHold(false);
}
if (mode === 'closed') {
  for (const port of [pair.a, pair.b]) await port.close();
  await pair.close?.();
}
process.stdout.write('ready');
`;

export const processes = portGroup('Process', (claim) => {
  claim('keeps this one running only while it is told to', async ({ a, b, before }) => {
    for (const port of [a, b]) {
      port.setProcessHold(true);
      port.setProcessHold(false);
    }
    await assertNoMoreThan(before, 'while nothing holds it');
  });

  for (const [mode, isHeld] of [
    ['idle', false],
    ['closed', false],
    ['held', true],
  ] as const) {
    const ends = isHeld ? 'goes on' : 'ends';
    claim(
      `a process of its own ${ends} with a port that is ${mode}`,
      async (bench) => {
        // The other process uses the same addresses.
        await bench.close();
        const { exit, text } = await lifeOf(bench, mode, isHeld ? STAYS_MS : ENDS_WITHIN_MS);
        assert.equal(exit, isHeld ? undefined : 0, `the process, after so long; it said: ${text}`);
      },
      ['process'],
    );
  }
});

/** The exit code of the process; undefined if it still runs at that time after it was ready. */
async function lifeOf(
  { a, module }: OpenBench,
  mode: string,
  withinMs: number,
): Promise<{ exit: number | undefined; text: string }> {
  const family = isIpv4Gid(gidOf(a)) ? 'ipv4' : 'ipv6';
  const flags = process.execArgv.filter((flag) => !flag.startsWith('--inspect'));
  const values = ['--input-type=module', '-e', PROGRAM, '--', module!, family, mode];
  const child = spawn(process.execPath, [...flags, ...values], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  child.stderr.on('data', (data: Buffer) => (text += data.toString()));
  const exited = once(child, 'close').then(([code]) => (code as number | null) ?? -1);
  const ready = once(child.stdout, 'data').then(() => undefined);
  const late = async (ms: number): Promise<undefined> => delay(ms, undefined, { ref: false });
  try {
    const early = await Promise.race([exited, ready, late(PATIENCE_MS)]);
    return { exit: early ?? (await Promise.race([exited, late(withinMs)])), text };
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
}
