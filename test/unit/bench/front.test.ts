import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AwakeLoop } from '../../../bench/compare/awake-loop.js';
import { cell } from '../../../bench/compare/cells.js';
import { rowsNamed } from '../../../bench/compare/rows.js';
import { Frames, framed, FramedSockets } from '../../../bench/front/framed.js';
import type { Messenger, Messengers } from '../../../bench/front/messenger-end.js';
import { Talk } from '../../../bench/front/talk.js';
import { WebSockets } from '../../../bench/front/web-socket.js';
import { loopback } from '../../support/loopback.js';

const HOST = loopback(80, 1);

/** A link whose peer answers each message with it, and its loop of sends and receives. */
function talkOf(workload: 'ping' | 'calls' | 'send', depth: number) {
  const done: string[] = [];
  const answers: string[] = [];
  const takers: ((message: string) => void)[] = [];
  let [sending, most, sent] = [0, 0, 0];
  const link = {
    send: async (message: string): Promise<void> => {
      sent += 1;
      sending += 1;
      most = Math.max(most, sending);
      await nextTurn();
      sending -= 1;
      const taker = takers.shift();
      if (taker !== undefined) taker(message);
      else answers.push(message);
    },
    receive: (): Promise<string> => {
      const answer = answers.shift();
      if (answer !== undefined) return Promise.resolve(answer);
      return new Promise((resolve) => takers.push(resolve));
    },
    close: () => Promise.resolve(),
  };
  const payloads = Array.from({ length: depth }, (_, i) => `message ${i}`);
  const treatment = {
    answer: (message: string) => message,
    done: (message: string) => void done.push(message),
    free: () => undefined,
  };
  const work = cell('flow', workload, 64, { depth, polling: 'event' });
  const talk = new Talk<string, string>(link, work, payloads, treatment);
  return { talk, done, counts: () => ({ most, sent }) };
}

describe('Messages of the benchmark', () => {
  it('are cut out of whatever pieces TCP brings', () => {
    const texts = ['one', '', 'a longer message', 'x'.repeat(300)];
    const stream = Buffer.concat(texts.map((text) => framed(Buffer.from(text))));
    for (const pieceBytes of [1, 3, 7, 64, stream.length]) {
      const taken: string[] = [];
      const frames = new Frames((message) => taken.push(Buffer.from(message).toString()));
      for (let at = 0; at < stream.length; at += pieceBytes) {
        frames.push(stream.subarray(at, at + pieceBytes));
      }
      assert.deepEqual(taken, texts, `in pieces of ${pieceBytes}`);
    }
  });

  const peers: Readonly<Record<string, () => Messengers>> = {
    'node:net with a length': () => new FramedSockets(),
    ws: () => new WebSockets(),
  };
  for (const [name, make] of Object.entries(peers)) {
    it(`cross ${name} whole`, async () => {
      const messengers = make();
      const accepted: Messenger[] = [];
      const port = await messengers.listen(HOST, (messenger) => {
        accepted.push(messenger);
        messenger.onMessage((message) => messenger.send(message));
      });
      const client = await messengers.connect(HOST, port);
      const texts = ['first', 'second '.repeat(2000), 'third'];
      const taken: string[] = [];
      await new Promise<void>((resolve, reject) => {
        client.onError(reject);
        client.onMessage((message) => {
          taken.push(Buffer.from(message).toString());
          if (taken.length === texts.length) resolve();
        });
        for (const text of texts) client.send(Buffer.from(text));
      });
      assert.deepEqual(taken, texts);
      client.close();
      messengers.unlisten();
      for (const messenger of accepted) messenger.close();
      await assert.rejects(make().connect(HOST, port), /ECONNREFUSED/);
    });
  }

  it('go one by one in pings, and so many at a time in streams and calls', async () => {
    for (const [workload, depth] of [
      ['ping', 1],
      ['calls', 8],
      ['send', 8],
    ] as const) {
      const { talk, done, counts } = talkOf(workload, depth);
      const { messages, counted } = await talk.run(0.005);
      const { most, sent } = counts();
      assert.equal(most, depth, workload);
      assert.equal(messages, sent, workload);
      assert.ok(counted > 0, workload);
      assert.equal(done.length, workload === 'send' ? 0 : sent, workload);
    }
  });

  it('are served: each is answered, and done with; of streams none is answered', async () => {
    for (const workload of ['calls', 'send'] as const) {
      const messages = ['one', 'two'];
      const [sent, done]: [string[], string[]] = [[], []];
      const link = {
        // A send that fails is nothing to the server: the receive behind it fails, too.
        send: (message: string) => {
          sent.push(message);
          return Promise.reject(new Error('broken'));
        },
        receive: () => {
          const next = messages.shift();
          return next === undefined ? Promise.reject(new Error('over')) : Promise.resolve(next);
        },
        close: () => Promise.resolve(),
      };
      const talk = new Talk<string, string>(link, cell('flow', workload, 64), [], {
        answer: (message) => `answer to ${message}`,
        done: (message) => void done.push(message),
        free: () => undefined,
      });
      await assert.rejects(talk.serve(), /over/);
      const answers = workload === 'send' ? [] : ['answer to one', 'answer to two'];
      assert.deepEqual([sent, done], [answers, ['one', 'two']]);
    }
  });

  it('have rows in every polling mode of connections, with the goals of each', () => {
    const goals = rowsNamed(['Answer', 'conn.send']).map(({ label, rivals }) => {
      return [label, rivals[0]!.moreUsGoal ?? rivals[0]!.goal];
    });
    assert.deepEqual(goals, [
      ['8 B half RTT, conn.send and receive, copied, event', 1.5],
      ['8 B half RTT, conn.send and receive, copied, adaptive', 1.5],
      ['64 B conn.send and receive, copied, 64 in flight, adaptive', 1.5],
      ['8 B half RTT, conn.send and receive, lent, event', 1.5],
      ['8 B half RTT, conn.send and receive, lent, adaptive', 1.5],
      ['64 B conn.send and receive, lent, 64 in flight, adaptive', 1.5],
      ['64 B half RTT, request and answer, conn, event', 0.5],
      ['64 B half RTT, request and answer, conn, adaptive', 1],
      ['64 B requests and answers, conn, 64 in flight, adaptive', 1],
      ['64 B half RTT, request and answer, channel, event', 0.5],
      ['64 B half RTT, request and answer, channel, adaptive', 1],
      ['64 B requests and answers, channel, 64 in flight, adaptive', 1],
    ]);
  });

  it('keep the event loop awake where sockets are polled, and only then', () => {
    const turns: (() => void)[] = [];
    const loop = new AwakeLoop((work) => turns.push(work));
    loop.begin(cell('node-ws', 'ping', 64, { polling: 'event' }));
    assert.equal(turns.length, 0);
    loop.begin(cell('node-ws', 'ping', 64, { polling: 'spin' }));
    loop.begin(cell('node-ws', 'ping', 64, { polling: 'spin' }));
    for (let i = 0; i < 3; i++) {
      assert.equal(turns.length, 1);
      turns.shift()?.();
    }
    loop.end();
    turns.shift()?.();
    assert.equal(turns.length, 0);
  });
});
