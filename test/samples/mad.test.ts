import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { MadStatus, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { Attribute, DIRECTORY, toBytes, toText } from '../../samples/mad/protocol.js';
import { Program, runSample } from './program.js';
import { loopback } from '../support/loopback.js';
import { patience } from '../support/patience.js';

const [SERVER, CLIENT, OTHER] = [loopback(2, 71), loopback(2, 72), loopback(2, 73)] as const;
const PATIENCE = String(patience(20_000));

describe('sample mad', () => {
  let server: Program;

  before(async () => {
    server = new Program('mad', 'serve', '--listen', SERVER);
    const [, address] = await server.printed(/serving on (.*)\n/);
    assert.equal(address, SERVER);
  });

  after(async () => {
    server.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.deepEqual({ code, stderr }, { code: 143, stderr: '' });
  });

  const query = (...args: string[]): ReturnType<typeof runSample> =>
    runSample('mad', 'query', ...args, '--to', SERVER, '--from', CLIENT, '--timeout', PATIENCE);

  it('asks another process for one line', async () => {
    const { code, stdout, stderr } = await query();
    assert.deepEqual([code, stderr], [0, '']);
    assert.ok(stdout.startsWith(`${hostname()}: `), stdout);
  });

  it('gets an answer of several hundred kilobytes', async () => {
    const { code, stdout, stderr } = await query('text', '--bytes', '300000');
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout.length, 300_001);
    assert.ok(stdout.startsWith('All that goes around comes around. All that'));
  });

  it('shows no directory unless it was given one', async () => {
    const { code, stdout, stderr } = await query('listing');
    const refused = `mad: ${SERVER} does not say its listing: INVALID_ATTRIBUTE_VALUE\n`;
    assert.deepEqual([code, stdout, stderr], [1, '', refused]);
  });

  describe('with a directory to show', () => {
    let directory: string;
    let shows: Program;
    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'mad-'));
      shows = new Program('mad', 'serve', '--listen', OTHER, '--directory', directory);
      await shows.printed(/serving on /);
    });
    after(async () => {
      shows.kill('SIGTERM');
      await shows.ended;
      await rm(directory, { recursive: true });
    });

    it('tells the names there, with nothing in them that a terminal obeys', async () => {
      for (const name of ['beta', 'alpha', 'c\x1b[2J']) await writeFile(join(directory, name), '');
      const args = ['--to', OTHER, '--from', CLIENT, '--timeout', PATIENCE];
      const { stdout, stderr } = await runSample('mad', 'query', 'listing', ...args);
      assert.deepEqual([stdout, stderr], ['alpha\nbeta\nc\\u{1b}[2J\n', '']);
    });

    it('tells them whatever path a peer asks for', async () => {
      await mkdir(join(directory, 'inside'));
      const ia = await openIa(softroce({ addresses: [CLIENT] }));
      try {
        const agent = ia.mad.registerAgent(DIRECTORY);
        const ask = { address: OTHER, attributeId: Attribute.LISTING, timeoutMs: Number(PATIENCE) };
        for (const path of ['/', '..', join(directory, 'inside')]) {
          const { status, data } = await agent.request({ ...ask, data: toBytes(path) });
          assert.equal(status, MadStatus.OK);
          assert.match(toText(data), /^alpha\nbeta\n[^\n]*\ninside$/);
        }
      } finally {
        await ia.close();
      }
    });
  });

  it('says at once that it cannot show a directory', async () => {
    const args = ['serve', '--listen', OTHER, '--directory', '/no/such'];
    const { code, stdout, stderr } = await runSample('mad', ...args);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^mad: ENOENT.*\/no\/such.*\n$/);
  });

  it('says in one sentence that nobody answers, and what is wrong with a call', async () => {
    const args = ['query', '--to', loopback(2, 79), '--from', CLIENT, '--timeout', '50'];
    const silent = await runSample('mad', ...args);
    assert.deepEqual([silent.code, silent.stderr], [1, 'mad: no answer\n']);
    const wrong = await runSample('mad', 'query', '--to', 'nowhere', '--from', CLIENT);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^mad: .*nowhere.*\n$/);
  });
});
