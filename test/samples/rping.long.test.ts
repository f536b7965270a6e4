import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { Program, assertSoon, runSample, timed } from './program.js';
import { loopback } from '../support/loopback.js';

const SERVER = loopback(74, 1);
const CLIENT = loopback(74, 2);

describe('rping', () => {
  const programs: Program[] = [];

  function start(...args: readonly string[]): Program {
    const program = new Program('rping', ...args);
    programs.push(program);
    return program;
  }

  afterEach(async () => {
    const left = programs.splice(0);
    for (const program of left) program.kill('SIGKILL');
    await Promise.all(left.map((program) => program.ended));
  });

  async function fails(args: readonly string[], sentence: RegExp): Promise<void> {
    const { ms, value } = await timed(runSample('rping', ...args));
    assert.match(value.stderr, sentence);
    assert.equal(value.stderr.trimEnd().split('\n').length, 1, value.stderr);
    assert.equal(value.code, 1);
    await assertSoon(ms);
  }

  it('plays ping-pong between two processes', async () => {
    const server = start('-s', '-a', SERVER, '-S', '1000', '-v');
    await server.printed(/listening/);
    const client = start('-c', '-a', SERVER, '-I', CLIENT, '-C', '3', '-S', '1000', '-v', '-V');
    const [served, pinged] = await Promise.all([server.ended, client.ended]);
    assert.deepEqual([served.code, served.stderr], [0, '']);
    assert.deepEqual([pinged.code, pinged.stderr], [0, '']);
    assert.equal(served.stdout.match(/server ping data: rdma-ping-\d: /g)?.length, 3);
    assert.match(pinged.stdout, /ping data: rdma-ping-0: .*\n.*rdma-ping-1: .*\n.*rdma-ping-2: /);
  });

  it('ends on SIGINT, at both sides', async () => {
    const server = start('-s', '-a', SERVER);
    await server.printed(/listening/);
    const client = start('-c', '-a', SERVER, '-I', CLIENT, '-v');
    await client.printed(/rdma-ping-9:/);
    client.kill('SIGINT');
    const { ms, value } = await timed(Promise.all([client.ended, server.ended]));
    assert.deepEqual([value[0].code, value[0].stderr], [130, 'rping: interrupted\n']);
    assert.ok([0, 1].includes(value[1].code ?? -1), String(value[1].code));
    assert.ok(value[1].stderr.split('\n').length <= 2, value[1].stderr);
    await assertSoon(ms);
  });

  it('says that there is no server', () =>
    fails(
      ['-c', '-a', SERVER, '-I', CLIENT],
      // Three hints over a second: the third comes just before or after that, or when it can.
      /^rping: the peer cannot be reached: .*port unreachable: reported for [34] messages in \d/,
    ));

  it('says that the port is taken', async () => {
    const taken = createSocket('udp4');
    taken.bind(4791, SERVER);
    await once(taken, 'listening');
    try {
      await fails(
        ['-s', '-a', SERVER],
        /^rping: .*UDP port 4791 is in use by another program \(take 127\.\d+\.\d+\.\d+ .*\)\n$/,
      );
    } finally {
      taken.close();
    }
  });

  it('says what is wrong with an option', async () => {
    await fails(
      ['-c', '-a', 'there'],
      /^rping: "there" is not an IP address \(names are not resolved: .*\)\n$/,
    );
    await fails(['-c', '-a', SERVER, '-S', '5'], /an integer from 26 to 65535/);
    await fails(['-a', SERVER], /either --server or --client is needed/);
  });
});
