import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { loopback } from '../support/loopback.js';

const [LISTENER, CONNECTOR] = [loopback(2, 41), loopback(2, 42)] as const;

interface Program {
  readonly child: ChildProcess;
  readonly lines: string[];
  /** Resolves when the program has said this. */
  said(line: string): Promise<void>;
}

function start(...parameters: readonly string[]): Program {
  const path = join(import.meta.dirname, 'process-program.js');
  const child = fork(path, parameters, { silent: true });
  child.disconnect();
  const lines: string[] = [];
  child.stdout?.on('data', (data: Buffer) => lines.push(...data.toString().trim().split('\n')));
  child.stderr?.on('data', (data: Buffer) => lines.push(`stderr: ${data.toString()}`));
  const said = async (line: string): Promise<void> => {
    while (!lines.includes(line)) {
      assert.equal(child.exitCode, null, lines.join('; '));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return { child, lines, said };
}

for (const way of ['udp', 'shm'] as const) {
  describe(`Processes, ${way}`, () => {
    const children: ChildProcess[] = [];
    const run = (...parameters: readonly string[]): Program => {
      const program = start(way, ...parameters);
      children.push(program.child);
      return program;
    };

    afterEach(() => {
      for (const child of children.splice(0)) child.kill('SIGKILL');
    });

    it('two processes connect, write, send and disconnect; both end by themselves', async () => {
      const listener = run('listen', LISTENER);
      await listener.said('listening');
      const connector = run('connect', CONNECTOR, LISTENER);
      const exits = [once(listener.child, 'exit'), once(connector.child, 'exit')];
      assert.deepEqual(await Promise.all(exits), [
        [0, null],
        [0, null],
      ]);
      assert.deepEqual(listener.lines, ['listening', `sum ${3 * 300_000}`, 'done']);
      assert.deepEqual(connector.lines, ['done']);
    });

    it('a service point keeps its process alive, an idle adapter does not', async () => {
      const listener = run('listen', LISTENER);
      await listener.said('listening');
      const idle = run('idle', CONNECTOR);
      assert.deepEqual(await once(idle.child, 'exit'), [0, null]);
      assert.deepEqual(idle.lines, ['done']);
      assert.equal(listener.child.exitCode, null);
    });

    it('a process that is killed: its peer gets TRANSPORT and one BROKEN', async () => {
      const listener = run('listen', LISTENER);
      await listener.said('listening');
      const writer = run('write', CONNECTOR, LISTENER);
      await writer.said('writing');
      listener.child.kill('SIGKILL');
      assert.deepEqual(await once(writer.child, 'exit'), [0, null]);
      assert.deepEqual(writer.lines, ['writing', 'TRANSPORT, 1 BROKEN', 'done']);
    });

    // By UDP an idle connection has nothing to notice it by, unless it is kept alive.
    if (way === 'shm') {
      it('an idle connection learns at once that its peer was killed: PEER_GONE', async () => {
        const listener = run('listen', LISTENER);
        await listener.said('listening');
        const waiter = run('wait', CONNECTOR, LISTENER);
        await waiter.said('waiting');
        listener.child.kill('SIGKILL');
        await once(waiter.child, 'exit');
        assert.deepEqual(waiter.lines, ['waiting', 'BROKEN PEER_GONE', 'done']);
      });
    }

    it('a peer that is killed at any time ends one connection, and the next comes', async () => {
      for (let round = 0; round < 5; round++) {
        const listener = run('listen', LISTENER);
        await listener.said('listening');
        const writer = run('write', CONNECTOR, LISTENER);
        const ended = once(writer.child, 'exit');
        // From before they meet to the middle of their work.
        await new Promise((resolve) => setTimeout(resolve, 150 * round));
        if (round > 0) await writer.said('writing');
        listener.child.kill('SIGKILL');
        if (round === 0) writer.child.kill('SIGKILL');
        await ended;
        if (round > 0) assert.deepEqual(writer.lines.at(-1), 'done');
      }
    });
  });
}
