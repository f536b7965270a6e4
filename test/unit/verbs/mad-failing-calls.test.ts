// Every system call of management datagrams fails, wherever it occurs in the life of two agents:
// somebody is told why, nothing hangs, no file is left, and agents of other ports carry on.

import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { SpiError } from '../../../core/spi/index.js';
import { addon, fakeUmad, madOf, type UmadCall, UmadNode, until } from '../../fake-umad/fake.js';

const { EIO, ENOMEM } = constants.errno;

/** By the functions that the addon calls. */
const CALLS: Readonly<Record<string, readonly UmadCall[]>> = {
  umad_open: ['open'],
  umad_close: ['close'],
  umad_ioctl: ['register', 'unregister'],
  umad_read: ['read'],
  umad_write: ['write'],
};
/** What is closed is closed, and the kernel unregisters what a closed file had. */
const MADE_GOOD: readonly UmadCall[] = ['close', 'unregister'];

/** Somebody who has nothing to do with it. */
class Bystander {
  private readonly node = new UmadNode(['fd00::b1']);
  private readonly agent = this.node.agent();
  private readonly other = new UmadNode(['fd00::b2']);
  private asked = 0;

  constructor() {
    this.other.answerer();
  }

  async check(): Promise<void> {
    await ask(this.agent, this.other, () => this.node.log.length === 2 * (this.asked + 1));
    this.asked++;
    assert.equal(this.node.log.at(-1), 'SUCCESS question');
  }

  async close(): Promise<void> {
    await Promise.all([this.node.mad.close(), this.other.mad.close()]);
  }
}

async function ask(
  agent: ReturnType<UmadNode['agent']>,
  to: UmadNode,
  isOver: () => boolean,
): Promise<void> {
  const data = madOf({ transactionIdHi: agent.hiTid });
  const wanted = { destination: to.address(), data, timeoutUs: 20_000, retries: 1 };
  agent.send({ ...wanted, context: 'question' });
  await until('over', () => {
    fakeUmad.advance(1);
    return isOver();
  });
}

interface Outcome {
  readonly problems: SpiError[];
  /** What the agents were told. */
  readonly log: readonly string[];
}

let lives = 1;

/** One agent asks another three times; then both go. */
async function live(): Promise<Outcome> {
  const network = `fd00:${(lives++).toString(16)}`;
  const [a, b] = [new UmadNode([`${network}::1`]), new UmadNode([`${network}::2`])];
  const problems: SpiError[] = [];
  try {
    b.answerer();
    const agent = a.agent();
    for (let i = 0; i < 3; i++) {
      const before = a.results.length;
      await ask(agent, b, () => a.results.length > before);
    }
  } catch (error) {
    if (!(error instanceof SpiError)) throw error;
    problems.push(error);
  }
  for (const { error } of [...a.results, ...b.results]) {
    if (error instanceof SpiError) problems.push(error);
  }
  await Promise.all([a.mad.close(), b.mad.close()]);
  return { problems, log: [...a.log, ...b.log] };
}

describe('verbs MAD: every system call fails once', () => {
  let bystander: Bystander;
  before(() => (bystander = new Bystander()));
  after(async () => {
    await bystander.close();
    fakeUmad.reset();
  });
  afterEach(async () => {
    await bystander.check();
  });

  it('these are all that the addon makes', () => {
    assert.deepEqual(addon.functions('umad').sort(), Object.keys(CALLS).sort());
  });

  for (const call of Object.values(CALLS).flat()) {
    for (const [code, errno] of Object.entries({ ENOMEM, EIO })) {
      it(`${call}: ${code}`, async () => {
        const files = fakeUmad.openFiles();
        let [nth, told] = [0, 0];
        for (; ; nth++) {
          fakeUmad.inject(call, nth + 1, errno);
          const { problems, log } = await live();
          const isThrough = fakeUmad.pendingInjections() > 0;
          if (isThrough) fakeUmad.clearInjections();
          await until('closed', () => fakeUmad.openFiles() <= files);
          if (isThrough) {
            assert.deepEqual(problems, []);
            break;
          }
          told += Number(
            problems.length > 0 || log.some((line) => !/SUCCESS|response|receive/.test(line)),
          );
          for (const { message } of problems) assert.match(message, /ENOMEM|EIO|gone|dropped/);
        }
        assert.ok(nth > 0, 'it is reached');
        // The last reads of either are for nothing: nobody misses what they would have given.
        const quiet = call === 'read' ? 4 : 0;
        if (MADE_GOOD.includes(call)) assert.equal(told, 0);
        else assert.ok(told > 0 && told >= nth - quiet, `told ${told} times of ${nth}`);
      });
    }
  }
});
