/** Unix sockets of the addon: whole messages, descriptors, and the end of the peer. */
import assert from 'node:assert/strict';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { UNIX_MESSAGE, type UnixListener, type UnixSocket } from '../../providers/host/index.js';
import { nativeAddon } from './addon.js';

const openDescriptors = (): number => readdirSync('/proc/self/fd').length;
let names = 0;
const newName = (): string => `dapl-test/${process.pid}/${names++}`;

/** A pair of connected sockets. */
function connected(): { near: UnixSocket; far: UnixSocket } {
  const name = newName();
  const listener = nativeAddon().listenUnix(name, 1);
  const near = nativeAddon().connectUnix(name);
  const far = listener.accept();
  listener.close();
  assert.ok(far);
  return { near, far };
}

function codeOf(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
  return undefined;
}

describe('native Unix sockets', () => {
  it('carry messages whole, in order, until the end', () => {
    const { near, far } = connected();
    assert.equal(near.receive(), undefined);
    const longest = new Uint8Array(UNIX_MESSAGE.BYTES).fill(7);
    for (const bytes of [Uint8Array.of(1, 2, 3), longest]) assert.ok(near.send(bytes, []));
    assert.deepEqual(far.receive(), { bytes: Uint8Array.of(1, 2, 3), descriptors: [] });
    assert.deepEqual(far.receive(), { bytes: longest, descriptors: [] });
    assert.equal(far.receive(), undefined);
    near.close();
    assert.equal(far.receive(), null);
    assert.equal(
      codeOf(() => far.send(Uint8Array.of(1), [])),
      'EPIPE',
    );
    far.close();
  });

  it('hand over descriptors, which are then of both', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dapl-'));
    try {
      const { near, far } = connected();
      const path = join(folder, 'file');
      const own = openSync(path, 'w');
      near.send(Uint8Array.of(1), [own]);
      closeSync(own);
      const [taken] = far.receive()?.descriptors ?? [];
      assert.ok(taken !== undefined);
      writeSync(taken, 'written by the taker');
      closeSync(taken);
      assert.equal(readFileSync(path, 'utf8'), 'written by the taker');
      near.close();
      far.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('refuse what is too long, or empty, and lose no descriptor', () => {
    const { near, far } = connected();
    const before = openDescriptors();
    const tooMany = Array.from({ length: UNIX_MESSAGE.DESCRIPTORS + 1 }, () => 0);
    assert.equal(
      codeOf(() => near.send(new Uint8Array(UNIX_MESSAGE.BYTES + 1), [])),
      'EMSGSIZE',
    );
    assert.equal(
      codeOf(() => near.send(new Uint8Array(0), [])),
      'EMSGSIZE',
    );
    assert.equal(
      codeOf(() => near.send(Uint8Array.of(1), tooMany)),
      'EMSGSIZE',
    );
    assert.equal(
      codeOf(() => near.send(Uint8Array.of(1), [-1])),
      'EBADF',
    );
    assert.equal(far.receive(), undefined);
    assert.ok(near.send(Uint8Array.of(1), tooMany.slice(1)));
    far.close();
    near.close();
    assert.equal(openDescriptors(), before - 2, 'those that nobody took are closed');
  });

  it('say false when the peer does not read, and go on when it does', () => {
    const { near, far } = connected();
    const message = new Uint8Array(UNIX_MESSAGE.BYTES);
    let sent = 0;
    while (near.send(message, [])) sent++;
    assert.ok(sent > 0 && sent < 10_000, `${sent} messages`);
    for (let i = 0; i < sent; i++) assert.ok(far.receive());
    assert.ok(near.send(message, []));
    near.close();
    far.close();
  });

  it('have names once, which are free again when the listener is closed', () => {
    const addon = nativeAddon();
    const name = newName();
    const listener = addon.listenUnix(name, 1);
    assert.equal(
      codeOf(() => addon.listenUnix(name, 1)),
      'EADDRINUSE',
    );
    assert.equal(listener.accept(), undefined);
    listener.close();
    listener.close();
    assert.equal(
      codeOf(() => addon.connectUnix(name)),
      'ECONNREFUSED',
    );
    assert.equal(
      codeOf(() => addon.listenUnix('', 1)),
      'ENAMETOOLONG',
    );
    assert.equal(
      codeOf(() => addon.listenUnix('n'.repeat(108), 1)),
      'ENAMETOOLONG',
    );
    addon.listenUnix('n'.repeat(107 - name.length) + name, 1).close();
  });

  it('say which process is at the other end', () => {
    const { near, far } = connected();
    const { pid, uid, isOwnUser } = near.identity();
    assert.deepEqual([pid, uid], [process.pid, process.geteuid?.()]);
    assert.equal(isOwnUser, uid !== 65534);
    assert.deepEqual(far.identity(), near.identity());
    near.close();
    far.close();
  });

  it('tell of callers, messages and the end by the event loop', async () => {
    const name = newName();
    const listener = nativeAddon().listenUnix(name, 4);
    const heard: string[] = [];
    const ended = new Promise<void>((resolve) => {
      listener.watch(() => {
        const socket = listener.accept();
        socket?.watch(() => {
          const message = socket.receive();
          heard.push(message ? 'message' : 'end');
          if (message !== null) return;
          socket.close();
          resolve();
        });
      });
    });
    const near = nativeAddon().connectUnix(name);
    near.send(Uint8Array.of(1), []);
    near.close();
    await ended;
    listener.close();
    assert.deepEqual(heard, ['message', 'end']);
  });

  it('go with their thread', async () => {
    const before = openDescriptors();
    const name = newName();
    const url = new URL('./unix-socket-worker.js', import.meta.url);
    const worker = new Worker(url, { workerData: name });
    await once(worker, 'message');
    const near = nativeAddon().connectUnix(name);
    await worker.terminate();
    assert.equal(near.receive(), null);
    near.close();
    assert.equal(
      codeOf(() => nativeAddon().connectUnix(name)),
      'ECONNREFUSED',
    );
    assert.ok(openDescriptors() <= before, 'no descriptor is left');
  });

  it('do not keep the process alive', () => {
    const listeners: UnixListener[] = [];
    const handles = (): number =>
      (process as unknown as { getActiveResourcesInfo(): string[] }).getActiveResourcesInfo()
        .length;
    const before = handles();
    const listener = nativeAddon().listenUnix(newName(), 1);
    listener.watch(() => undefined);
    listeners.push(listener);
    assert.equal(handles(), before);
    for (const each of listeners) each.close();
  });
});
