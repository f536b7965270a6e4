import assert from 'node:assert/strict';
import { Program, runSample } from './program.js';
import { inBlock0, loopback } from '../support/loopback.js';

const [SERVER, CLIENT] = [loopback(75, 1), loopback(75, 2)] as const;

describe('sample udaddy', () => {
  const programs: Program[] = [];

  async function serve(...args: readonly string[]): Promise<Program> {
    const program = new Program('udaddy', '-b', SERVER, ...args);
    programs.push(program);
    await program.printed(/listening/);
    return program;
  }

  afterEach(async () => {
    const left = programs.splice(0);
    for (const program of left) program.kill('SIGKILL');
    await Promise.all(left.map((program) => program.ended));
  });

  it('sends messages of several endpoints, and gets the replies of each', async () => {
    const load = ['-c', '3', '-C', '4', '-S', '1000'];
    const server = await serve(...load);
    const client = await runSample('udaddy', '-s', SERVER, '-b', CLIENT, ...load);
    assert.deepEqual(client, { code: 0, stdout: '12 replies came\n', stderr: '' });
    const { code, stdout, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^replied to 3 endpoints, 12 messages$/m);
  });

  it('says that nobody serves the port', async () => {
    const server = await serve('-p', '7999');
    const { code, stderr } = await runSample('udaddy', '-s', SERVER, '-b', CLIENT);
    assert.equal(code, 1);
    assert.match(
      inBlock0(stderr),
      /^udaddy: port 7174 of 127\.0\.75\.1: nobody serves datagrams there.*\n$/,
    );
    server.kill('SIGINT');
    const interrupted = await server.ended;
    assert.deepEqual([interrupted.code, interrupted.stderr], [130, 'udaddy: interrupted\n']);
  });

  it('says that the sizes differ', async () => {
    const server = await serve('-S', '100');
    const client = new Program('udaddy', '-s', SERVER, '-b', CLIENT, '-S', '50');
    programs.push(client);
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [1, 'udaddy: a message of 50 bytes, not 100: use -S\n']);
  });

  it('says what is wrong with an option', async () => {
    const failures: [string[], RegExp][] = [
      [[], /a client needs --server, a server --bind/],
      [['-b', SERVER, '-S', '4097'], /an integer from 1 to 4096/],
      [['-s', 'there'], /^udaddy: "there" is not an IP address \(names are not resolved: .*\)\n$/],
    ];
    for (const [args, sentence] of failures) {
      const { code, stderr } = await runSample('udaddy', ...args);
      assert.equal(code, 1);
      assert.match(stderr, sentence);
    }
  });
});
