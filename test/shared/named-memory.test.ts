/**
 * Memory that processes share by a name: the same for all that ask, whichever came first and
 * whichever is killed, and nothing of it is left when the last one has gone.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { hasLongCases } from '../support/lane.js';
import { leaveOut } from '../support/left-out.js';

const PROGRAM = join(import.meta.dirname, 'sharer.js');
const BYTES = 1 << 16;
/** Processes that are killed, each after the next one has come. */
const GENERATIONS = hasLongCases ? 8 : 2;
let names = 0;
const newName = (): string => `test-${process.pid}-${names++}`;

const running = new Set<Sharer>();

class Sharer {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(name: string, bytes = BYTES, user?: number) {
    const options = user === undefined ? {} : { uid: user, gid: user, cwd: '/' };
    this.child = spawn(process.execPath, [PROGRAM, name, String(bytes)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      ...options,
    });
    this.lines = createInterface(this.child.stdout!)[Symbol.asyncIterator]();
    running.add(this);
  }

  async ask(command: string): Promise<string> {
    this.child.stdin!.write(`${command}\n`);
    const { value, done } = (await this.lines.next()) as IteratorResult<string, undefined>;
    assert.ok(done !== true, 'the program has ended');
    return value;
  }

  signal(name: 'SIGKILL' | 'SIGSTOP'): void {
    this.child.kill(name);
  }

  async kill(): Promise<void> {
    running.delete(this);
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.signal('SIGKILL');
    await once(this.child, 'exit');
  }
}

async function opened(name: string): Promise<Sharer> {
  const sharer = new Sharer(name);
  assert.equal(await sharer.ask('open'), 'opened');
  return sharer;
}

/** Abstract sockets of the name that there are. */
function socketsOf(name: string): number {
  return readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .filter((line) => line.includes(name)).length;
}

describe('memory by a name', () => {
  afterEach(async () => {
    await Promise.all([...running].map((each) => each.kill()));
  });

  it('is zeros for the first process, and the same for all, Atomics included', async () => {
    const name = newName();
    const sharers = Array.from({ length: 6 }, () => new Sharer(name));
    const answers = await Promise.all(sharers.map((each) => each.ask('open')));
    assert.deepEqual(new Set(answers), new Set(['opened']), 'all ask at the same time');
    const before = await Promise.all(sharers.map((each) => each.ask('add 5 1')));
    assert.deepEqual(before.map(Number).sort(), [0, 1, 2, 3, 4, 5]);
    for (const each of sharers) assert.equal(await each.ask('load 5'), '6');
  });

  it('stays when the process that made it is killed, for others and for newcomers', async () => {
    const name = newName();
    const generations = [await opened(name), await opened(name)];
    await generations[0]!.ask('add 0 1');
    for (let killed = 0; killed < GENERATIONS; killed++) {
      await generations.shift()!.kill();
      const newcomer = await opened(name);
      assert.equal(await newcomer.ask('add 0 1'), String(killed + 1));
      generations.push(newcomer);
    }
  });

  it('ends with the last process, and leaves no name', async () => {
    const name = newName();
    for (let round = 0; round < 3; round++) {
      const sharers = [await opened(name), await opened(name)];
      assert.equal(await sharers[1]!.ask('add 0 1'), '0', 'new memory');
      assert.ok(socketsOf(name) > 0);
      await Promise.all(sharers.map((each) => each.kill()));
      assert.equal(socketsOf(name), 0);
    }
  });

  it('is refused in another size, with both', async () => {
    const name = newName();
    await opened(name);
    const other = new Sharer(name, 2 * BYTES);
    assert.equal(await other.ask('open'), `EINVAL: the memory of that name has ${BYTES} bytes`);
  });

  it('is refused while the process that has it does not run', async () => {
    const name = newName();
    const stopped = await opened(name);
    const pid = await stopped.ask('pid');
    stopped.signal('SIGSTOP');
    const other = new Sharer(name);
    const text = `ETIMEDOUT: process ${pid}, which has the memory, does not answer`;
    assert.equal(await other.ask('open'), text);
  });

  it('is refused to another user', async function () {
    if (process.geteuid?.() !== 0) {
      leaveOut(this, 'only root can be two users', 'as root: npm test');
    }
    const name = newName();
    await opened(name);
    const other = new Sharer(name, BYTES, 54_321);
    assert.match(await other.ask('open'), /^EACCES: the name is in use by uid 0/);
    const theirs = newName();
    const first = new Sharer(theirs, BYTES, 54_321);
    assert.equal(await first.ask('open'), 'opened');
    assert.match(await new Sharer(theirs).ask('open'), /^EACCES: the name is in use by uid 54321/);
  });
});
