import assert from 'node:assert/strict';
import { Program, runSample } from './program.js';
import { inBlock0, loopback } from '../support/loopback.js';

const [FIRST, SECOND, TELLER] = [loopback(76, 1), loopback(76, 2), loopback(76, 3)] as const;
/** Of UDP port 4791 on loopback, which all runs of tests share: each has a group of its own. */
const GROUP = `239.196.${TELLER.split('.')[1]}.1`;

describe('sample mckey', () => {
  const programs: Program[] = [];

  async function hear(address: string, ...args: readonly string[]): Promise<Program> {
    const program = new Program('mckey', '-m', GROUP, '-b', address, ...args);
    programs.push(program);
    await program.printed(/joined/);
    return program;
  }

  afterEach(async () => {
    const left = programs.splice(0);
    for (const program of left) program.kill('SIGKILL');
    await Promise.all(left.map((program) => program.ended));
  });

  it('tells a group, and every member hears it', async () => {
    const load = ['-C', '4', '-S', '1000'];
    const members = [await hear(FIRST, ...load), await hear(SECOND, ...load, '-c', '2')];
    const teller = await runSample('mckey', '-s', '-m', GROUP, '-b', TELLER, ...load);
    assert.deepEqual(teller, { code: 0, stdout: `4 datagrams left for ${GROUP}\n`, stderr: '' });
    for (const [i, member] of members.entries()) {
      const { code, stdout, stderr } = await member.ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.equal(stdout.split('\n')[1], `${4 * (i + 1)} datagrams came, of ${TELLER}`);
    }
  });

  it('says that the sizes differ', async () => {
    const member = await hear(FIRST, '-S', '100');
    const teller = await runSample('mckey', '-s', '-o', '-m', GROUP, '-b', TELLER, '-S', '50');
    assert.equal(teller.code, 0);
    const { code, stderr } = await member.ended;
    assert.deepEqual([code, stderr], [1, 'mckey: a datagram of 50 bytes, not 100: use -S\n']);
  });

  it('says what is wrong with an option', async () => {
    const failures: [string[], RegExp][] = [
      [[], /required option '-m, --group <ip>'/],
      [['-m', GROUP, '-b', FIRST, '-S', '4097'], /an integer from 1 to 4096/],
      [['-m', FIRST, '-b', FIRST], /127\.0\.76\.1 is not the address of a group \(224/],
      [['-m', 'there', '-b', FIRST], /^mckey: "there" is not an IP address/],
      [['-m', 'ff05::1', '-b', FIRST], /^mckey: ff05::1: no address of its family\n$/],
    ];
    for (const [args, sentence] of failures) {
      const { code, stderr } = await runSample('mckey', ...args);
      assert.equal(code, 1);
      assert.match(inBlock0(stderr), sentence);
    }
  });
});
