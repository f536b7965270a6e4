import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program, runSample } from './program.js';

const [SERVER, CLIENT] = ['127.0.2.71', '127.0.2.72'] as const;

describe('sample mad', () => {
  let server: Program;

  before(async () => {
    server = new Program('mad', 'serve', '--listen', SERVER);
    await server.printed(/serving on 127\.0\.2\.71/);
  });

  after(async () => {
    server.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.deepEqual({ code, stderr }, { code: 143, stderr: '' });
  });

  const query = (...args: string[]): ReturnType<typeof runSample> =>
    runSample('mad', 'query', ...args, '--to', SERVER, '--from', CLIENT, '--timeout', '5000');

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

  it('sends a path and gets the names there', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'mad-'));
    try {
      for (const name of ['beta', 'alpha']) await writeFile(join(directory, name), '');
      const { stdout } = await query('listing', '--path', directory);
      assert.equal(stdout, 'alpha\nbeta\n');
      const { code, stderr } = await query('listing', '--path', join(directory, 'nowhere'));
      assert.deepEqual(
        [code, stderr],
        [1, `mad: ${SERVER} does not say its listing: INVALID_ATTRIBUTE_VALUE\n`],
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('says in one sentence that nobody answers, and what is wrong with a call', async () => {
    const args = ['query', '--to', '127.0.2.79', '--from', CLIENT, '--timeout', '50'];
    const silent = await runSample('mad', ...args);
    assert.deepEqual([silent.code, silent.stderr], [1, 'mad: no answer\n']);
    const wrong = await runSample('mad', 'query', '--to', 'nowhere', '--from', CLIENT);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^mad: .*nowhere.*\n$/);
  });
});
