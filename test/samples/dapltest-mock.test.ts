/** Both ends of dapltest in one process, over a fabric that is simulated: lossless and lossy. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';

import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';

import { runPerformance, runQuit, runTransaction } from '../../samples/dapltest/client.js';
import { LIMITS, runLimits } from '../../samples/dapltest/limit.js';
import type { TransactionCommand } from '../../samples/dapltest/messages.js';
import { parseOperations } from '../../samples/dapltest/operations.js';
import { runServer } from '../../samples/dapltest/server.js';

const SERVER = { address: '192.0.2.1', port: 62_000 };
const CLIENT = '192.0.2.2';
const MIX =
  'client SR 256 2 server SR 1025 client RW 5001 server RW 3000 3 client RR 4097 2 ' +
  'server RR 1024 client SR 0 -f server SR 1 -f';

class World {
  readonly printed: string[] = [];
  readonly served: string[] = [];
  private readonly opened: Ia[] = [];
  private readonly fabric: Fabric;
  serving: Promise<void> = Promise.resolve();

  constructor(
    lossPercent: number,
    readonly server = SERVER,
    readonly client = CLIENT,
  ) {
    this.fabric = new Fabric({ seed: 5, autoRun: true, link: { lossPercent } });
  }

  async open(address: string): Promise<Ia> {
    const ia = await openIa(mock({ fabric: this.fabric, address }));
    this.opened.push(ia);
    return ia;
  }

  readonly print = (line: string): void => void this.printed.push(line);

  async serve(): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      const open = (): Promise<Ia> => this.open(this.server.address);
      this.serving = runServer(open, { port: this.server.port, name: 'mock' }, (line) => {
        this.served.push(line);
        resolve();
      });
    });
    await ready;
  }

  async transaction(words: string, options: Partial<TransactionCommand> = {}): Promise<void> {
    const { validate = true } = options;
    const command: TransactionCommand = {
      ...{ iterations: 3, threads: 1, endpointsPerThread: 1, useRsp: false, poll: false },
      ...{ validate, operations: parseOperations(words.split(' '), validate) },
      ...options,
    };
    await runTransaction(await this.open(this.client), this.server, command, this.print);
  }

  /** Resolves when so many packets have been delivered. */
  async delivered(packets: number): Promise<void> {
    while (this.fabric.counters.delivered < packets) await setImmediate();
  }

  async closeServer(): Promise<void> {
    const own = this.opened.filter((ia) => ia.query().ia.iaAddress === this.server.address);
    await Promise.all(own.map((ia) => ia.close()));
  }

  /** Closes the newest adapter of a client, as if its process had ended. */
  async closeClient(): Promise<void> {
    await this.opened.findLast((ia) => ia.query().ia.iaAddress === this.client)?.close();
  }

  async close(): Promise<void> {
    await Promise.all(this.opened.map((ia) => ia.close('abrupt')));
    await this.serving;
  }
}

describe('dapltest in one process', () => {
  let world: World;

  afterEach(() => world.close());

  for (const lossPercent of [0, 3]) {
    it(`does transactions of all kinds, ${lossPercent} % of the packets lost`, async () => {
      world = new World(lossPercent);
      await world.serve();
      await world.transaction(MIX);
      await world.transaction(MIX, { threads: 3, endpointsPerThread: 2, iterations: 2 });
      await world.transaction(MIX, { useRsp: true, poll: true, threads: 2 });
      await world.transaction('client SR server SR', { validate: false });
      assert.deepEqual(world.served.slice(1), new Array(4).fill(FINISHED));
      assert.equal(world.printed.filter((line) => line.startsWith('Total WQE')).length, 4);
      await runQuit(await world.open(CLIENT), SERVER);
      await world.serving;
    });
  }

  it('serves several clients at a time, each on ports of its own', async () => {
    world = new World(0);
    await world.serve();
    await Promise.all([1, 2, 3].map(() => world.transaction(MIX, { endpointsPerThread: 2 })));
    assert.deepEqual(world.served.slice(1), new Array(3).fill(FINISHED));
  });

  it('does the same over IPv6', async () => {
    world = new World(1, { address: '2001:db8::1', port: 50_000 }, '2001:db8::2');
    await world.serve();
    await world.transaction(MIX, { threads: 2, endpointsPerThread: 2 });
    assert.deepEqual(world.served.slice(1), [FINISHED]);
  });

  it('measures reads and writes, waiting and polling', async () => {
    world = new World(0);
    await world.serve();
    for (const [transfer, mode] of [
      ['RW', 'blocking'],
      ['RR', 'polling'],
    ] as const) {
      await runPerformance(
        await world.open(CLIENT),
        SERVER,
        { transfer, mode, iterations: 20, pipeline: 7, segmentBytes: 3000, segments: 2 },
        world.print,
      );
    }
    const operations = world.printed.filter((line) => /Operation Type|Pipeline Length/.test(line));
    assert.deepEqual(
      operations.map((line) => line.replace(/.*: /, '')),
      [...['RDMA_WRITE', '7', 'RDMA_READ', '7']],
    );
  });

  it('makes objects until there are enough, and takes them back', async () => {
    world = new World(0);
    const tests = Object.keys(LIMITS) as (keyof typeof LIMITS)[];
    const options = { tests, maximum: 200, width: 2, firstPort: 40_000 };
    await runLimits(() => world.open(CLIENT), options, world.print);
    const counts = world.printed.filter((line) => /^LimitTest: .*: \d+$/.test(line));
    assert.equal(counts.length, tests.length);
    for (const line of counts) assert.match(line, /: 200$/);
  });

  it('says when a receive queue is full, and goes on', async () => {
    world = new World(0);
    const options = { tests: ['limit_rpost'], maximum: 1000, width: 1, firstPort: 1 } as const;
    await runLimits(() => world.open(CLIENT), options, world.print);
    assert.match(world.printed.join('\n'), /#129 fails: 128 receives are outstanding/);
    assert.match(world.printed.join('\n'), /recv buffers posted: 128$/m);
  });

  it('goes on serving when a client ends in the middle of its test', async () => {
    world = new World(0);
    await world.serve();
    const long = world.transaction(MIX, { threads: 2, iterations: 1e6 });
    const failed = assert.rejects(long);
    await world.delivered(1000);
    await world.closeClient();
    await failed;
    await world.transaction(MIX);
    assert.match(world.served[1] ?? '', /^Server: a client's test has failed: .*DISCONNECTED/);
    assert.equal(world.served[2], FINISHED);
  });

  it('tells the client when the server ends in the middle of its test', async () => {
    world = new World(0);
    await world.serve();
    const long = world.transaction(MIX, { threads: 2, iterations: 1e6 });
    const failed = assert.rejects(long, /operation \d \(.*\) failed \(FLUSHED\): DISCONNECTED/);
    await world.delivered(1000);
    await world.closeServer();
    await failed;
  });

  it('tells the client that the server has refused, and goes on serving', async () => {
    world = new World(0);
    await world.serve();
    const threads = 1001;
    const refused = /^Error: the server's answer: the peer has ended the connection/;
    await assert.rejects(world.transaction(MIX, { threads }), refused);
    await world.transaction(MIX);
    assert.match(
      world.served[1] ?? '',
      /failed: it asks for 1001 endpoints with \d+ bytes in all$/,
    );
    assert.equal(world.served[2], FINISHED);
  });
});

const FINISHED = 'Server: Transaction Test Finished for this client';
