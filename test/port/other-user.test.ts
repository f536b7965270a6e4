// softroce between two users of one machine: what they share is the network, and nothing else.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatError, type DatEvent, type Ia, openIa, RemoteSegment } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { leaveOut } from '../support/left-out.js';
import { loopback, testPort } from '../support/loopback.js';
import { patience } from '../support/patience.js';

const UDP_PORT = testPort(37);
const [OURS, THEIRS] = [loopback(0, 63), loopback(0, 64)] as const;
/** Nobody who has a name, and the one that a system shows for all that it cannot name. */
const USERS = [54_321, 65_534];
const LENGTH = 1 << 18;
const PROGRAM = join(import.meta.dirname, 'other-user-program.js');

type Line = Readonly<Record<string, string | number>>;

class Other {
  private readonly lines: AsyncIterator<string>;
  private constructor(private readonly child: ChildProcess) {
    assert.ok(child.stdout);
    this.lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  }

  static start(uid: number, address: string, mode: 'echo' | 'open'): Other {
    const args = [PROGRAM, address, String(UDP_PORT), mode];
    const stdio = ['ignore', 'pipe', 'inherit'] as const;
    const options = { cwd: '/', uid, gid: uid, stdio: [...stdio] };
    return new Other(spawn(process.execPath, args, options));
  }

  async next(): Promise<Line> {
    const { value, done } = (await this.lines.next()) as IteratorResult<string, undefined>;
    assert.ok(done !== true, 'the other user cannot run the program: is the tree readable?');
    return JSON.parse(value) as Line;
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }
}

function open(address: string): Promise<Ia> {
  return openIa(softroce({ addresses: [address], udpPort: UDP_PORT }));
}

async function refusal(call: Promise<unknown>): Promise<DatError> {
  const error: unknown = await call.then(
    () => assert.fail('it was taken'),
    (reason: unknown) => reason,
  );
  assert.ok(DatError.isDatError(error), String(error));
  return error;
}

function fill(bytes: Uint8Array, seed: number): Uint8Array {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * seed + (i >>> 8)) & 0xff;
  return bytes;
}

for (const uid of USERS) {
  describe(`softroce, beside user ${uid}`, () => {
    before(function () {
      if (process.geteuid?.() === 0) return;
      const remedy = 'as root: npx mocha dist/test/port/other-user.test.js';
      leaveOut(this, 'only root can be two users', remedy);
    });

    it('sends, writes and reads; memory may change once a request has completed', async () => {
      const other = Other.start(uid, THEIRS, 'echo');
      const ia = await open(OURS);
      try {
        const there = await other.next();
        assert.equal(there['uid'], uid);
        const pz = ia.createPz();
        const evd = ia.createEvd({ qlen: 64 });
        const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
        const seen = new Map<number, DatEvent>();
        const next = async (): Promise<DatEvent> =>
          (await evd.wait({ timeoutMs: patience(60_000) })).event;
        const completed = async (cookie: number): Promise<void> => {
          while (!seen.has(cookie)) {
            const event = await next();
            assert.ok(event.type === 'dto' && event.status === 0);
            assert.equal(event.transferredLength, LENGTH);
            seen.set(event.cookie, event);
          }
        };
        const [from, to] = [ia.allocate(LENGTH, { pz }), ia.allocate(LENGTH, { pz })];
        ep.connect({ address: THEIRS, connQual: 7471 });
        await next();
        assert.equal(ep.state, 'CONNECTED');
        const sent = fill(from.bytes, 7).slice();
        ep.postRecv(to.segment(), 1);
        ep.postSend(from.segment(), 2);
        await completed(2);
        from.bytes.fill(0);
        await completed(1);
        assert.equal(Buffer.compare(to.bytes, sent), 0, 'what came back');
        const remote = new RemoteSegment({
          address: BigInt(there['address'] ?? 0),
          rmrContext: Number(there['rmrContext']),
        });
        const written = fill(from.bytes, 11).slice();
        ep.postRdmaWrite(from.segment(), 3, remote);
        await completed(3);
        from.bytes.fill(0);
        ep.postRdmaRead(to.segment(), 4, remote);
        await completed(4);
        assert.equal(Buffer.compare(to.bytes, written), 0, 'what was read');
      } finally {
        await ia.close();
        await other.end();
      }
    });

    it('an address that another user has is DAT_PORT_IN_USE, either way round', async () => {
      const other = Other.start(uid, THEIRS, 'echo');
      const ia = await open(OURS);
      const late = Other.start(uid, OURS, 'open');
      try {
        await other.next();
        const ours = await refusal(open(THEIRS));
        const theirs = await late.next();
        for (const { code, message } of [ours, theirs as { code: string; message: string }]) {
          assert.equal(code, 'DAT_PORT_IN_USE');
          assert.ok(
            [OURS, THEIRS].some((address) => message.includes(address)),
            message,
          );
          assert.match(message, RegExp(String(UDP_PORT)));
        }
      } finally {
        await ia.close();
        await Promise.all([other.end(), late.end()]);
      }
    });
  });
}
