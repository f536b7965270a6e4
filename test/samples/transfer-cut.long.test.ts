import assert from 'node:assert/strict';
import { readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inBlock0 } from '../support/loopback.js';
import { assertSoon, isAlive, type Outcome, type Program, timed } from './program.js';
import { TransferWorld } from './transfer-world.js';

const MIB = 2 ** 20;
/** Takes long enough to be cut in the middle: no machine moves it before the first write shows. */
const LARGE_BYTES = 64 * MIB;

describe('transfer: cut in the middle', () => {
  let world: TransferWorld;
  let path: string;
  let part: string;

  before(async () => {
    world = await TransferWorld.make(73);
    path = await world.file('file', LARGE_BYTES);
    part = join(world.out, 'file.part');
  });
  after(() => world.close());
  afterEach(async () => {
    await world.stop();
    await rm(part, { force: true });
  });

  /** A receiver and a sender in the middle of the transfer. */
  async function underWay(): Promise<{ receiver: Program; sender: Program }> {
    const receiver = await world.receive();
    const [written, sender] = [world.written('file.part'), world.send(path)];
    await written;
    return { receiver, sender };
  }

  async function soon(program: Program): Promise<Outcome> {
    const { ms, value } = await timed(program.ended);
    await assertSoon(ms);
    assert.equal(value.stderr.trimEnd().split('\n').length, 1, value.stderr);
    return value;
  }

  function assertFailed(outcome: Outcome, code: number, sentence: RegExp): void {
    assert.match(inBlock0(outcome.stderr), sentence);
    assert.equal(outcome.code, code);
  }

  async function assertKept(): Promise<void> {
    const { size } = await stat(part);
    assert.ok(size > 0 && size < LARGE_BYTES, `${size} bytes kept`);
    assert.deepEqual(await readdir(world.out), ['file.part']);
  }

  async function assertWhole(): Promise<void> {
    assert.deepEqual(await readdir(world.out), ['file']);
    assert.ok((await readFile(path)).equals(await readFile(join(world.out, 'file'))));
    await rm(join(world.out, 'file'));
  }

  const figures = /, after [\d.]+ of 64\.0 MiB at [\d.]+ \w+\/s; /;

  it('goes on after the receiver was killed', async () => {
    const { receiver, sender } = await underWay();
    receiver.kill('SIGKILL');
    const outcome = await soon(sender);
    assertFailed(outcome, 1, /^127\.0\.73\.1 port 7471 does not answer any more, after /);
    assert.match(outcome.stderr, figures);
    await receiver.ended;
    await assertKept();
    await resumes();
  });

  it('keeps what came when the sender was killed', async () => {
    const { receiver, sender } = await underWay();
    sender.kill('SIGKILL');
    assertFailed(await soon(receiver), 1, /^127\.0\.73\.2 does not answer any more, after /);
    await sender.ended;
    await assertKept();
  });

  it('takes a stopped receiver for a dead one', async () => {
    const { receiver, sender } = await underWay();
    receiver.kill('SIGSTOP');
    assertFailed(
      await soon(sender),
      1,
      /^127\.0\.73\.1 port 7471 does not answer any more, after /,
    );
    receiver.kill('SIGCONT');
    assertFailed(await soon(receiver), 1, figures);
  });

  it('takes a stopped sender for a dead one', async () => {
    const { receiver, sender } = await underWay();
    sender.kill('SIGSTOP');
    assertFailed(await soon(receiver), 1, /^127\.0\.73\.2 does not answer any more, after /);
    sender.kill('SIGCONT');
    assertFailed(await soon(sender), 1, figures);
  });

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`tells the receiver of a ${signal} at the sender, however often it comes`, async () => {
      const { receiver, sender } = await underWay();
      sender.kill(signal);
      sender.kill(signal);
      const [sent, received] = await Promise.all([soon(sender), soon(receiver)]);
      assertFailed(sent, code, /^Interrupted, after .*; the same command resumes it\.$/m);
      assertFailed(received, 1, /^127\.0\.73\.2 stopped: Interrupted, after .*; what came is kept/);
      await assertKept();
    });
  }

  it('tells the sender of a SIGINT at the receiver', async () => {
    const { receiver, sender } = await underWay();
    receiver.kill('SIGINT');
    const [sent, received] = await Promise.all([soon(sender), soon(receiver)]);
    assertFailed(received, 130, /^Interrupted, after .*; what came is kept\.$/m);
    assertFailed(sent, 1, /^127\.0\.73\.1 port 7471 stopped: Interrupted, after /);
  });

  it('starts anew when the part is of another file, or was changed', async () => {
    await writeFile(part, (await readFile(path)).subarray(0, 5 * MIB).fill(7, 1000, 1001));
    const { code, stdout } = await world.both(path).ended;
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /Resuming/);
    await assertWhole();
  });

  describe('with one command for both sides', () => {
    async function bothUnderWay(): Promise<{ command: Program; pids: number[] }> {
      const [written, command] = [world.written('file.part'), world.both(path)];
      const found = await command.printed(/Process (\d+) .* process (\d+)/);
      await written;
      return { command, pids: found.slice(1, 3).map(Number) };
    }

    it('ends on SIGINT, leaves no process, and goes on later', async () => {
      const { command, pids } = await bothUnderWay();
      command.kill('SIGINT');
      assertFailed(await soon(command), 130, /^Interrupted, after .*; the same command resumes it/);
      assert.deepEqual(pids.filter(isAlive), []);
      await assertKept();
      await resumes();
    });

    it('names the side that was killed', async () => {
      const { command, pids } = await bothUnderWay();
      process.kill(pids[0]!, 'SIGKILL');
      const outcome = await soon(command);
      assertFailed(
        outcome,
        1,
        /^The sender died of SIGKILL, after .*; the same command resumes it/,
      );
      assert.deepEqual(pids.filter(isAlive), []);
    });

    it('ends a receiver that was stopped', async () => {
      const { command, pids } = await bothUnderWay();
      process.kill(pids[1]!, 'SIGSTOP');
      assertFailed(await soon(command), 1, /^127\.0\.73\.1 port 7471 does not answer any more, /);
      assert.deepEqual(pids.filter(isAlive), []);
    });
  });

  async function resumes(): Promise<void> {
    const { code, stdout, stderr } = await world.both(path).ended;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /^Resuming after [\d.]+ of 64\.0 MiB\.$/m);
    await assertWhole();
  }
});
