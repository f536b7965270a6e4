import assert from 'node:assert/strict';

import { Program, runSample } from './program.js';
import { inBlock0, loopback } from '../support/loopback.js';

const [SERVER, CLIENT] = [loopback(76, 1), loopback(76, 2)] as const;
const TO = ['-s', SERVER, '-D', CLIENT] as const;

describe('sample dapltest', () => {
  const programs: Program[] = [];

  async function serve(...args: readonly string[]): Promise<Program> {
    const program = new Program('dapltest', '-T', 'S', '-D', SERVER, ...args);
    programs.push(program);
    await program.printed(/Service Point Ready/);
    return program;
  }

  afterEach(async () => {
    const left = programs.splice(0);
    for (const program of left) program.kill('SIGKILL');
    await Promise.all(left.map((program) => program.ended));
  });

  it('runs tests one after the other, and quits when it is told', async () => {
    const server = await serve();
    const mix = 'client SR 256 2 server SR 9000 client RW 20000 server RR 3000'.split(' ');
    const tests = [
      ['-T', 'T', ...TO, '-i', '5', '-t', '2', '-w', '2', '-V', ...mix],
      ['-T', 'T', ...TO, '-i', '5', '-r', 'client', 'SR', '-f', 'server', 'SR', '-f'],
      ['-T', 'P', ...TO, '-i', '20', 'RW', '10000'],
      ['-TQ', ...TO],
    ];
    for (const args of tests) {
      const { code, stderr } = await runSample('dapltest', ...args);
      assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    }
    const { code, stdout, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout.match(/Finished/g)?.length, 3, stdout);
  });

  it('says that there is no server, or no such port', async () => {
    await serve('-n', '50000');
    const nobody = await runSample('dapltest', '-T', 'Q', ...TO);
    assert.equal(nobody.code, 1);
    assert.match(
      inBlock0(nobody.stderr),
      /^dapltest: port 62000 of 127\.0\.76\.1: nothing listens there.*\n$/,
    );
  });

  it('says what is wrong with the command line', async () => {
    const sr = ['client', 'SR', 'server', 'SR'];
    const failures: [string[], RegExp][] = [
      [['-T', 'X'], /^dapltest: -T comes first: S, T, P, Q or L \(--help has more\)\n$/],
      [['-T', 'T', ...TO, '-i', '0', ...sr], /an integer from 1 to/],
      [
        ['-T', 'T', '-s', 'there', ...sr],
        /^dapltest: "there" is not an IP address \(names are not resolved: .*\)\n$/,
      ],
    ];
    for (const [args, sentence] of failures) {
      const { code, stderr } = await runSample('dapltest', ...args);
      assert.match(stderr, sentence, args.join(' '));
      assert.equal(code, 1);
    }
    const help = await runSample('dapltest', '--help');
    assert.match(help.stdout, /-T T +transaction test/);
    assert.equal(help.code, 0);
  });
});
