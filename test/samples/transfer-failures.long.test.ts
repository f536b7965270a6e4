import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatEventNumber, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { failureOf } from '../../samples/transfer/failure.js';
import { assertSoon, type Program, timed } from './program.js';
import { TransferWorld } from './transfer-world.js';
import { inBlock0, loopback } from '../support/loopback.js';

describe('transfer: one sentence for every failure', () => {
  let world: TransferWorld;
  let path: string;
  let taken: Socket | undefined;

  beforeEach(async () => {
    world = await TransferWorld.make(72);
    path = await world.file('file', 100);
  });
  afterEach(async () => {
    taken?.close();
    taken = undefined;
    await world.close();
  });

  /** A program of another kind on the port of RoCE: takes what comes, and says nothing. */
  async function occupy(address: string): Promise<void> {
    taken = createSocket('udp4');
    taken.bind(4791, address);
    await once(taken, 'listening');
  }

  async function fails(program: Program, sentence: RegExp): Promise<void> {
    const { ms, value } = await timed(program.ended);
    assert.match(inBlock0(value.stderr), sentence);
    assert.equal(value.stderr.trimEnd().split('\n').length, 1, value.stderr);
    assert.equal(value.code, 1);
    await assertSoon(ms);
  }

  it('names a missing file', () => fails(world.both('/no/such'), /^There is no "\/no\/such"\.$/m));

  it('takes no directory for a file', () => fails(world.both(world.out), /not a regular file\.$/m));

  it('names a file that may not be read', () => {
    // Nothing is unreadable to root, who runs this too: so the system's own word for it is given.
    const error = Object.assign(new Error('EACCES'), { code: 'EACCES', path });
    assert.match(failureOf(error).message, /^No permission for ".*file"\.$/);
  });

  it('names a directory that cannot be made', () =>
    fails(world.both(path, '--out', '/proc/nothing'), /^There is no "\/proc\/nothing"\.$/m));

  it('names the receiver’s file when that is in the way', async () => {
    await mkdir(join(world.out, 'file'));
    await fails(world.both(path), /^".*out\/file" is a directory, not a file\.$/m);
    assert.deepEqual(await readdir(world.out), ['file']);
  });

  it('names the busy UDP port of the receiver', async () => {
    await occupy(world.to);
    await fails(world.both(path), /127\.0\.72\.1, UDP port 4791 is in use by another program \(/m);
  });

  it('names the busy UDP port of the sender, and ends the receiver', async () => {
    await occupy(world.from);
    await fails(world.both(path), /127\.0\.72\.2, UDP port 4791 is in use by another program \(/m);
  });

  it('notices at once that there is no process at the address', () =>
    fails(world.send(path), /^127\.0\.72\.1 port 7471 cannot be reached: .*\.$/m));

  it('waits in vain for a program that does not speak RoCE', async () => {
    await occupy(world.to);
    await fails(world.send(path), /cannot be reached: no answer within the timeout\.$/m);
  });

  it('says that nobody listens on the port', async () => {
    const receiver = await world.receive('--port', '4711');
    await fails(
      world.send(path, '--port', '4712'),
      /^Nobody listens on 127\.0\.72\.1 port 4712\.$/m,
    );
    receiver.kill('SIGINT');
    const { code, stderr } = await receiver.ended;
    assert.deepEqual(
      { code, stderr },
      { code: 130, stderr: 'Interrupted before a sender came.\n' },
    );
  });

  it('says that the receiver is busy with another sender, whom this does not disturb', async () => {
    const receiver = await world.receive();
    const ia = await openIa(softroce({ addresses: [world.from] }));
    const pz = ia.createPz();
    const first = ia.createEndpoint({ pz });
    first.postRecv(ia.allocate(512, { pz }).segment());
    const established = new Promise<void>((resolve) => {
      first.connection$.subscribe((event) => {
        if (event.number === DatEventNumber.ESTABLISHED) resolve();
      });
    });
    first.connect({ address: world.to, connQual: 7471 });
    await established;
    await fails(
      world.send(path, '--from', loopback(72, 3)),
      /refused the connection: busy with another sender\.$/m,
    );
    assert.equal(first.state, 'CONNECTED');
    await ia.close();
    assert.equal((await receiver.ended).code, 1);
  });

  it('says what is wrong with an option', async () => {
    await fails(world.send(path, '--port', '70000'), /A port is a number from 1 to 65535\.$/m);
    await fails(world.send(path, '--to', 'somewhere'), /^"somewhere" is not an IP address /m);
  });
});
